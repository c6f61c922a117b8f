package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"benchrun/workloads/catalog"
	"benchrun/workloads/expect"
	"benchrun/workloads/spec"
)

// Inputs is what a job reads, as it was before the job began.
type Inputs struct {
	expected map[string]int64 // batch: records that tasks will consume, by vertex
	files    []input
}

type input struct {
	path string
	info fs.FileInfo
}

// InputChangedError: a file is not what it was when the job began, so nobody knows
// what the job has read of it, and no output can be proved.
type InputChangedError struct{ File, Change string }

func (e *InputChangedError) Error() string {
	return fmt.Sprintf("input %s changed while the job ran: %s; leave input files alone until the run has ended", e.File, e.Change)
}

// LookAtInputs notes what the files of a job are, and counts what is in those of a
// batch job: its progress is measured against that. The look takes its time, so it
// is done before the job starts and takes nothing from it.
func LookAtInputs(w *spec.Workload) (*Inputs, error) {
	files, err := catalog.Files(w)
	if err != nil {
		return nil, err
	}
	in := &Inputs{}
	for _, id := range slices.Sorted(maps.Keys(files)) {
		for _, path := range files[id] {
			info, err := os.Stat(path)
			if err != nil {
				return nil, fmt.Errorf("source %s: %w", id, err)
			}
			in.files = append(in.files, input{path, info})
		}
	}
	if w.Mode != spec.Batch {
		return in, nil
	}
	if in.expected, err = expect.Consumption(w, files); err != nil {
		return nil, fmt.Errorf("what the job is to consume: %w", err)
	}
	return in, nil
}

// changed finds the first file that is another one by now; the error is an
// *InputChangedError.
func (in *Inputs) changed() error {
	for _, f := range in.files {
		now, err := os.Stat(f.path)
		if err != nil {
			if bad, ok := errors.AsType[*fs.PathError](err); ok {
				err = bad.Err
			}
			return &InputChangedError{f.path, err.Error()}
		}
		var change string
		switch {
		case !os.SameFile(f.info, now):
			change = "another file has its name"
		case now.Size() != f.info.Size():
			change = fmt.Sprintf("it had %d bytes and has %d", f.info.Size(), now.Size())
		case !now.ModTime().Equal(f.info.ModTime()):
			change = "it was written at " + now.ModTime().UTC().Format(time.RFC3339Nano)
		default:
			continue
		}
		return &InputChangedError{f.path, change}
	}
	return nil
}
