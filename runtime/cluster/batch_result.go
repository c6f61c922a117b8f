package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"benchrun/runtime/failpoint"
	"benchrun/runtime/joblog"
)

// resultName is the file of the state folder that says how a batch job has ended.
const resultName = "result.json"

// Fault points around its writing; the subject is the state folder.
var writingResult = failpoint.NewPassage("result/write", "result/written")

// resultFile is master.Result in the state folder of masters.
type resultFile struct{ state, id string }

func (f resultFile) name() string { return filepath.Join(f.state, resultName) }
func (f resultFile) seal() seal   { return seal{"result", 1, f.id} }

// Read implements master.Result. The result of another job is none of this one, and
// a damaged one tells nothing: both are errors (*StateError).
func (f resultFile) Read() (*joblog.JobFinished, error) {
	b, err := f.seal().read(f.name())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	r := &joblog.JobFinished{}
	if err == nil {
		if err = json.Unmarshal(b, r); err == nil && r.Status == "" {
			err = errors.New("it has no status")
		}
		if err != nil {
			err = &StateError{f.name(), -1, err}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("result of the job: %w", err)
	}
	return r, nil
}

// Write implements master.Result.
func (f resultFile) Write(r joblog.JobFinished) error {
	b, err := json.Marshal(r)
	if err == nil {
		err = writingResult.Pass(f.state, func() error { return f.seal().write(f.name(), b) })
	}
	if err != nil {
		return fmt.Errorf("result of the job %s: %w", f.name(), err)
	}
	return nil
}

// forget removes the result of a job that was run here before.
func (f resultFile) forget() error {
	if err := os.Remove(f.name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("result of the job before: %w", err)
	}
	return nil
}
