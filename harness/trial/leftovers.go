package trial

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"os"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/workloads/spec"
)

// Sweeper removes what the sinks of a job have left in folders that its workload
// names. Submission is the id of the job, by which no file of another one is taken.
type Sweeper func(w *spec.Workload, submission string) error

// submission is the id of a trial's job, in the names of what it leaves. It is the
// same whenever it is asked for, so that who comes after a trial that was killed
// knows what was its.
func submission(run, trial string) string {
	sum := sha256.Sum256([]byte(run + "/" + trial))
	return base32.StdEncoding.EncodeToString(sum[:15]) // a whole number of letters: no padding
}

// sweep removes what trials have left that were cut off: they run again, under new
// ids. Their temporary folders go last, for it is by them that such trials are known.
func sweep(folder *result.Folder, l *result.Loaded, files map[string]*spec.File, sinks Sweeper) error {
	entries, err := os.ReadDir(folder.Path("tmp"))
	if err != nil {
		return fmt.Errorf("temporary folders: %w", err)
	}
	for _, e := range entries {
		ended := slices.ContainsFunc(l.Lines, func(t result.Trial) bool { return t.Trial == e.Name() && t.Outcome != result.TrialInterrupted })
		if ended {
			continue
		}
		_, workload, _ := strings.Cut(e.Name(), "-")
		if f := files[workload]; f != nil && sinks != nil {
			job := submission(l.Run.Run, e.Name())
			for _, c := range f.Cells() { // which it was, nobody has written down
				w, err := f.Resolve(c.ID)
				if err == nil {
					err = sinks(private(w, e.Name(), job), job)
				}
				if err != nil {
					return fmt.Errorf("files that the trial %s has left: %w", e.Name(), err)
				}
			}
		}
		if err := os.RemoveAll(folder.Path("tmp", e.Name())); err != nil {
			return fmt.Errorf("temporary folder: %w", err)
		}
	}
	return nil
}
