package result

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked means that another process writes the run folder.
var ErrLocked = errors.New("another process is writing this run")

// Folder is a run folder open for writing. Its methods are for one goroutine.
type Folder struct {
	dir    string
	trials *os.File // locked
}

// Create makes a new run folder under parent, named after the time and label,
// and fails rather than share one that exists.
func Create(parent, label string, now time.Time) (*Folder, error) {
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return nil, fmt.Errorf("results folder: %w", err)
	}
	for range 10 {
		var r [4]byte
		rand.Read(r[:])
		dir := filepath.Join(parent, now.UTC().Format("20060102T150405Z")+"-"+label+"-"+hex.EncodeToString(r[:]))
		err := os.Mkdir(dir, 0o777)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("run folder: %w", err)
		}
		for _, sub := range []string{"events", "logs", "tmp"} {
			if err := os.Mkdir(filepath.Join(dir, sub), 0o777); err != nil {
				return nil, fmt.Errorf("run folder: %w", err)
			}
		}
		if err := syncDir(dir); err != nil {
			return nil, err
		}
		if err := syncDir(parent); err != nil {
			return nil, err
		}
		return open(dir, os.O_CREATE|os.O_EXCL)
	}
	return nil, fmt.Errorf("run folder: no free name under %s", parent)
}

// Open opens an existing run folder for more trials. A half-written last line
// of trials.jsonl is cut off.
func Open(dir string) (*Folder, error) {
	if _, err := os.Stat(filepath.Join(dir, "run.json")); err != nil {
		return nil, fmt.Errorf("%s is no run folder: %w", dir, err)
	}
	f, err := open(dir, os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := cutTail(f.trials); err != nil {
		f.Close()
		return nil, fmt.Errorf("trials.jsonl: %w", err)
	}
	for _, sub := range []string{"events", "logs", "tmp"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o777); err != nil {
			f.Close()
			return nil, fmt.Errorf("run folder: %w", err)
		}
	}
	return f, nil
}

func open(dir string, flag int) (*Folder, error) {
	t, err := os.OpenFile(filepath.Join(dir, "trials.jsonl"), os.O_RDWR|os.O_APPEND|flag, 0o666)
	if err != nil {
		return nil, fmt.Errorf("run folder: %w", err)
	}
	if err := lock(t); err != nil {
		t.Close()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if err := syncDir(dir); err != nil {
		t.Close()
		return nil, err
	}
	return &Folder{dir: dir, trials: t}, nil
}

// cutTail truncates a file after its last newline.
func cutTail(f *os.File) error {
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	if end := bytes.LastIndexByte(b, '\n') + 1; end < len(b) {
		if err := f.Truncate(int64(end)); err != nil {
			return err
		}
		return f.Sync()
	}
	return nil
}

// Dir is the folder's path.
func (f *Folder) Dir() string { return f.dir }

// Path joins a name to the folder's path.
func (f *Folder) Path(name ...string) string {
	return filepath.Join(append([]string{f.dir}, name...)...)
}

// Close releases the folder.
func (f *Folder) Close() error { return f.trials.Close() }

// WriteRun replaces run.json.
func (f *Folder) WriteRun(r *Run) error {
	if err := WriteJSON(f.Path("run.json"), r); err != nil {
		return fmt.Errorf("run.json: %w", err)
	}
	return nil
}

// AppendTrial adds a line to trials.jsonl; when it returns nil, the line is on
// disk.
func (f *Folder) AppendTrial(t *Trial) error {
	b, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("trial %s: %w", t.Trial, err)
	}
	info, err := f.trials.Stat()
	if err != nil {
		return fmt.Errorf("trials.jsonl: %w", err)
	}
	if _, err := f.trials.Write(append(b, '\n')); err != nil {
		f.trials.Truncate(info.Size()) // a full disk must not leave half a line between whole ones
		return fmt.Errorf("trials.jsonl: %w", err)
	}
	if err := f.trials.Sync(); err != nil {
		return fmt.Errorf("trials.jsonl: %w", err)
	}
	return nil
}

// WriteJSON writes a value to a file as indented JSON, atomically; see
// WriteFile.
func WriteJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, append(b, '\n'))
}

// WriteFile replaces a file so that a reader, or a machine that lost power,
// sees the old content or the new one.
func WriteFile(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // fails once the file was renamed
	if _, err := tmp.Write(content); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Sync(); err != nil {
		tmp.Close()
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
