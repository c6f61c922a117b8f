package operator

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
	"benchrun/runtime/storage"
)

// fileSink writes one line a record with two-phase commit. A file is written
// under a name that begins with a dot, closed and synced at a barrier,
// remembered in the checkpoint, and renamed when that is complete. A restore
// from a checkpoint is the proof that it was complete, so what it remembers is
// renamed then; what no checkpoint remembers is never seen.
//
// In a batch job the file belongs to the attempt, is closed at the end, and is
// renamed by the master for the one attempt of the subtask that counts
// (CommitFiles).
type fileSink struct {
	base
	cost    cost
	path    string
	dir     string
	pending *state.List // names of files, without the dot, that wait for a commit
	byID    []commit    // of this attempt, ascending
	f       *os.File
	w       *bufio.Writer
	name    string
	seq     int
	now     int64
	line    []byte
}

type commit struct {
	checkpoint int64
	names      []string
}

func (o *fileSink) Open(c *Context) (err error) {
	o.c = c
	o.dir = o.folder(c.Dir)
	if err := storage.MakeFolders(o.dir); err != nil {
		return fmt.Errorf("operator %s: %w", c.ID, err)
	}
	if o.pending, err = c.Lists.Get("pending", state.Split); err != nil {
		return err
	}
	for _, name := range o.pending.Items {
		if err := o.commit(string(name)); err != nil {
			return err
		}
	}
	o.pending.Items = nil
	return nil
}

// folder is where the files go in a job whose output goes to dir.
func (o *fileSink) folder(dir string) string {
	path := o.path
	if path == "" {
		path = "output"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return path
}

func (o *fileSink) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	if o.f == nil {
		o.seq++
		o.name = fmt.Sprintf("part-%s-%d-%d-%08x", o.c.ID, o.c.Subtask, o.seq, rand.Uint32())
		if o.c.Batch {
			o.name = fmt.Sprintf("part-%s-%d-%d-%s", o.c.ID, o.c.Subtask, o.seq, o.c.Name)
		}
		f, err := os.OpenFile(o.hidden(o.name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if err != nil {
			return fmt.Errorf("operator %s: %w", o.c.ID, err)
		}
		o.f, o.w = f, bufio.NewWriterSize(f, 32<<10)
	}
	o.now++
	o.line = appendLine(o.line[:0], r)
	_, err := o.w.Write(o.line)
	return err
}

// appendLine writes a record as text: flags, source, copy, key, number, value.
func appendLine(b []byte, r *record.Record) []byte {
	for _, v := range []uint64{uint64(r.Flags), uint64(r.Source), uint64(r.Copy), r.Key, r.Number} {
		b = append(strconv.AppendUint(b, v, 10), ' ')
	}
	return append(strconv.AppendInt(b, r.Value, 10), '\n')
}

func (o *fileSink) hidden(name string) string { return filepath.Join(o.dir, "."+name) }

func (o *fileSink) Watermark(int64) error { return nil }

// Arrived implements Counter.
func (o *fileSink) Arrived() int64 { return o.now }

// Finish closes the file of a batch job: after it only renaming is left.
func (o *fileSink) Finish() error {
	if !o.c.Batch {
		return nil
	}
	return o.Prepare(0)
}

// Prepare closes the file being written: after it only renaming is left.
func (o *fileSink) Prepare(checkpoint int64) error {
	var names []string
	if o.f != nil {
		err := o.w.Flush()
		if err == nil {
			err = o.f.Sync()
		}
		if e := o.f.Close(); err == nil {
			err = e
		}
		o.f = nil
		if err == nil {
			err = syncFolder(o.dir)
		}
		if err != nil {
			return fmt.Errorf("operator %s: %w", o.c.ID, err)
		}
		names = append(names, o.name)
	}
	o.byID = append(o.byID, commit{checkpoint, names})
	o.pending.Items = nil
	for _, c := range o.byID {
		for _, n := range c.names {
			o.pending.Items = append(o.pending.Items, []byte(n))
		}
	}
	return nil
}

// Completed commits everything up to a checkpoint: it holds what earlier ones
// that failed had prepared, too.
func (o *fileSink) Completed(checkpoint int64) error {
	for len(o.byID) > 0 && o.byID[0].checkpoint <= checkpoint {
		for _, n := range o.byID[0].names {
			if err := o.commit(n); err != nil {
				return err
			}
		}
		o.byID = o.byID[1:]
	}
	return nil
}

// commit renames a file. One that has been renamed already is fine: a commit
// is repeated after a restore.
func (o *fileSink) commit(name string) error {
	err := commitFile(o.dir, name)
	if err == nil {
		err = syncFolder(o.dir)
	}
	if err != nil {
		return fmt.Errorf("operator %s: commit: %w", o.c.ID, err)
	}
	return nil
}

func (o *fileSink) Close() error {
	if o.f != nil {
		o.f.Close()
		os.Remove(o.hidden(o.name)) // never prepared, so nobody will ask for it
		o.f = nil
	}
	return nil
}
