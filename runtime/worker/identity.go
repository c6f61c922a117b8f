package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"benchrun/runtime/scheduling/batch"
)

// identity is the file of a batch worker's folder that says who that is, and by which
// names masters knew whoever worked on it. What a job log says to be at one of them is
// in the folder, whatever the worker is called now; the id is what workers find one
// another's partitions by, for a name may be another one's at the next master.
//
//	DIR/identity.json    {"format": 1, "id": "worker-0.9f3a61c2e07b45d8", "names": ["worker-0", "worker-2"]}
//
// It is replaced in one step, and survives its process as the partitions do. It
// goes when the folder is emptied.
type identity struct {
	file string
	id   string

	mu    sync.Mutex
	names []batch.Worker // oldest first
}

const (
	identityFormat = 1
	// maxNames bounds what a worker remembers that masters take for dead again and
	// again.
	maxNames = 256
)

type identityFile struct {
	Format int            `json:"format"`
	ID     string         `json:"id,omitempty"`
	Names  []batch.Worker `json:"names"`
}

// openIdentity reads what a folder says of itself; one that says nothing gets an id
// that begins with a name. After an error it says nothing, which costs a new master
// some waiting.
func openIdentity(dir, name string) (*identity, error) {
	i := &identity{file: filepath.Join(dir, "identity.json"), id: fmt.Sprintf("%s.%016x", name, rand.Uint64())}
	b, err := os.ReadFile(i.file)
	if errors.Is(err, fs.ErrNotExist) {
		return i, nil
	}
	var f identityFile
	if err == nil {
		err = json.Unmarshal(b, &f)
	}
	if err == nil && f.Format != identityFormat {
		err = fmt.Errorf("format %d, not %d", f.Format, identityFormat)
	}
	if err != nil {
		return i, fmt.Errorf("identity %s: %w", i.file, err)
	}
	i.names = f.Names
	if f.ID != "" {
		i.id = f.ID
	}
	return i, nil
}

// add notes a name. Nothing may be held under a name that is not noted.
func (i *identity) add(name batch.Worker) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if slices.Contains(i.names, name) {
		return nil
	}
	names := append(slices.Clone(i.names), name)
	names = names[max(0, len(names)-maxNames):]
	b, err := json.Marshal(identityFile{identityFormat, i.id, names})
	if err == nil {
		err = i.replace(append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("identity %s: %w", i.file, err)
	}
	i.names = names
	return nil
}

func (i *identity) replace(b []byte) error {
	temp := i.files()[1] // the folder has one owner
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(temp, i.file)
	}
	if err != nil {
		os.Remove(temp)
	}
	return err
}

// others are the names but one.
func (i *identity) others(name batch.Worker) (out []batch.Worker) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, n := range i.names {
		if n != name {
			out = append(out, n)
		}
	}
	return out
}

// has tells whether a file is the identity's.
func (i *identity) has(name string) bool { return slices.Contains(i.files(), name) }

func (i *identity) files() []string { return []string{i.file, i.file + ".new"} }

// forget: nothing is held under any name.
func (i *identity) forget() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.names = nil
	for _, name := range i.files() {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("identity: %w", err)
		}
	}
	return nil
}
