package operator

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"benchrun/runtime/failpoint"
	"benchrun/runtime/record"
	"benchrun/runtime/storage"
)

// Fault points around what makes files of a sink visible, or takes them away; the
// subject is the name of the file, of the folder for a sync.
var (
	renamingFile  = failpoint.NewPassage("filesink/rename", "filesink/renamed")
	removingFile  = failpoint.NewPassage("filesink/remove", "filesink/removed")
	syncingFolder = failpoint.NewPassage("filesink/sync-folder", "filesink/synced-folder")
)

// FileReport tells where a file sink has put its files.
type FileReport struct {
	Dir    string
	Prefix string
	Run    string   // batch: of the job; files of another run are not this one's
	Files  []string // batch: of this attempt, to be committed
}

// Report implements Reporter.
func (o *fileSink) Report() (any, error) {
	rep := &FileReport{Dir: o.dir, Prefix: prefix(o.c.ID)}
	if o.c.Batch {
		rep.Run, _, _ = strings.Cut(o.c.Name, ".")
		for _, n := range o.pending.Items {
			rep.Files = append(rep.Files, string(n))
		}
	}
	return rep, nil
}

func prefix(id string) string { return "part-" + id + "-" }

// AttemptName names an attempt of a batch job in the files that it leaves. Run is
// what no other job has that may write to the same folder; it has no dot or
// hyphen.
func AttemptName(run string, epoch uint64, attempt int) string {
	return fmt.Sprintf("%s.e%da%d", run, epoch, attempt)
}

// SinkFolder describes the files of an operator of a job before there is any
// report; ok is false if it is no file sink.
func SinkFolder(name, id string, params json.RawMessage, dir, run string) (rep *FileReport, ok bool, err error) {
	if library[name] == nil {
		return nil, false, nil // a source
	}
	op, err := New(name, params)
	if err != nil {
		return nil, false, err
	}
	o, ok := op.(*fileSink)
	if !ok {
		return nil, false, nil
	}
	return &FileReport{Dir: o.folder(dir), Prefix: prefix(id), Run: run}, true, nil
}

// Holds tells whether a file of the folder is of this sink and this run, and
// whether it is hidden.
func (r *FileReport) Holds(name string) (hidden, ok bool) {
	_, hidden, ok = r.attempt(name)
	return hidden, ok
}

// attempt is the part of a name that tells attempts apart. Subtask, ordinal and
// this part follow the prefix: more is the file of another sink, whose id begins
// like this one's.
func (r *FileReport) attempt(name string) (attempt string, hidden, ok bool) {
	name, hidden = strings.CutPrefix(name, ".")
	rest, ok := strings.CutPrefix(name, r.Prefix)
	parts := strings.Split(rest, "-")
	if !ok || len(parts) != 3 {
		return "", hidden, false
	}
	if r.Run == "" {
		return parts[2], hidden, true
	}
	attempt, ok = strings.CutPrefix(parts[2], r.Run+".")
	return attempt, hidden, ok
}

func syncFolder(dir string) error {
	return syncingFolder.Pass(dir, func() error { return storage.SyncFolder(dir) })
}

// commitFile renames a file; one that has been renamed already is fine. It is
// durable when the folder is.
func commitFile(dir, name string) error {
	if name != filepath.Base(name) {
		return fmt.Errorf("%q is no name of a file", name)
	}
	return renamingFile.Pass(name, func() error {
		final := filepath.Join(dir, name)
		err := os.Rename(filepath.Join(dir, "."+name), final)
		if errors.Is(err, fs.ErrNotExist) {
			if _, e := os.Stat(final); e == nil {
				return nil
			}
		}
		return err
	})
}

// removeFile removes a file; one that is not there is fine.
func removeFile(dir, name string) error {
	return removingFile.Pass(name, func() error {
		err := os.Remove(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
}

// CommitFiles makes the files of a finished attempt of a batch job visible. It
// may be repeated, and is durable after SyncFiles.
func CommitFiles(rep *FileReport) error {
	for _, n := range rep.Files {
		if err := commitFile(rep.Dir, n); err != nil {
			return fmt.Errorf("commit %s: %w", n, err)
		}
	}
	return nil
}

// SyncFiles makes durable which files of a sink's folder are there.
func SyncFiles(dir string) error {
	if err := syncFolder(dir); err != nil {
		return fmt.Errorf("committed files: %w", err)
	}
	return nil
}

// WithdrawFiles undoes CommitFiles, and removes what was not committed yet: no
// later commit finds it.
func WithdrawFiles(rep *FileReport) error {
	for _, n := range rep.Files {
		if n != filepath.Base(n) {
			return fmt.Errorf("take back: %q is no name of a file", n)
		}
		// Hidden first: a rename at the same time is caught under the other name.
		if err := errors.Join(removeFile(rep.Dir, "."+n), removeFile(rep.Dir, n)); err != nil {
			return fmt.Errorf("take back %s: %w", n, err)
		}
	}
	return nil
}

// DropFiles removes what attempts of a batch job have left that do not count, of
// this epoch and earlier ones.
func DropFiles(rep *FileReport, epoch uint64) error {
	entries, err := os.ReadDir(rep.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no attempt got that far
	}
	if err != nil {
		return fmt.Errorf("files that were not committed: %w", err)
	}
	var errs []error
	for _, e := range entries {
		attempt, hidden, ok := rep.attempt(e.Name())
		var of uint64
		if _, err := fmt.Sscanf(strings.TrimPrefix(attempt, "."), "e%da", &of); ok && hidden && err == nil && of <= epoch {
			errs = append(errs, removeFile(rep.Dir, e.Name()))
		}
	}
	return errors.Join(errs...)
}

// RemoveFiles removes all that a batch job has left, whether it was committed or not,
// and the folder if nothing else is in it. Nobody may be writing there for the job.
func RemoveFiles(rep *FileReport) error {
	if rep.Run == "" {
		return errors.New("remove files: no run is named")
	}
	entries, err := os.ReadDir(rep.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no attempt got that far
	}
	if err != nil {
		return fmt.Errorf("files of a job that is gone: %w", err)
	}
	var errs []error
	found := false
	for _, e := range entries {
		if _, ok := rep.Holds(e.Name()); ok {
			found = true
			errs = append(errs, removeFile(rep.Dir, e.Name()))
		}
	}
	if found {
		_ = os.Remove(rep.Dir) // it is somebody's if there is more
	}
	return errors.Join(errs...)
}

// ReadFiles calls fn for each record in the committed files of a sink.
func ReadFiles(rep *FileReport, fn func(r *record.Record) error) error {
	entries, err := os.ReadDir(rep.Dir)
	if err != nil {
		return fmt.Errorf("committed files: %w", err)
	}
	for _, e := range entries {
		if hidden, ok := rep.Holds(e.Name()); hidden || !ok {
			continue
		}
		if err := readFile(filepath.Join(rep.Dir, e.Name()), fn); err != nil {
			return err
		}
	}
	return nil
}

func readFile(name string, fn func(r *record.Record) error) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("committed files: %w", err)
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var r record.Record
		if _, err := fmt.Sscan(s.Text(), &r.Flags, &r.Source, &r.Copy, &r.Key, &r.Number, &r.Value); err != nil {
			return fmt.Errorf("committed file %s: %q: %w", name, s.Text(), err)
		}
		if err := fn(&r); err != nil {
			return err
		}
	}
	return s.Err()
}
