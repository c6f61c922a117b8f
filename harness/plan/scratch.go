package plan

import (
	"errors"
	"fmt"

	"benchrun/runtime/options"
	"benchrun/workloads/spec"
)

// CheckScratch refuses --from-scratch for a plan in which it would have no effect
// on some workload, or on any cell: it is about the log of a batch job's master.
func (p *Plan) CheckScratch() error {
	logged := false
	for _, c := range p.Cells {
		f := p.File(c.Workload)
		w, err := f.Resolve(c.Cell)
		if err != nil {
			return err
		}
		if w.Mode != spec.Batch {
			return fmt.Errorf("--from-scratch: workload %q (%s) is streaming: its masters keep no log that could be unreadable, they restore the newest complete checkpoint; leave the flag out, or the workload with --only '!workload:%s'",
				f.Name, f.Path, f.Name)
		}
		logged = logged || options.BatchJobRecovery.Get(w.Options)
	}
	if !logged {
		return errors.New("--from-scratch: " + options.BatchJobRecovery.Key() + " is off in all cells: without it no master keeps a log, and each begins from scratch anyway")
	}
	return nil
}
