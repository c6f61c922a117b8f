package catalog

import (
	"fmt"

	"benchrun/runtime/cluster"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"
)

// CheckRecovery finds the vertices of a file's jobs that recovery of batch jobs
// cannot keep although it is on, at their places. What is kept as a whole or not
// at all is a warning, and nothing at all a problem, in whichever cell it is: a
// cell that runs is one whose job is right.
func CheckRecovery(f *spec.File) (problems, warnings spec.Problems, err error) {
	if f.Mode != spec.Batch {
		return nil, nil, nil
	}
	seen := map[cluster.Unrecoverable]bool{}
	for _, c := range f.Cells() {
		w, err := f.Resolve(c.ID)
		if err != nil {
			return nil, nil, err
		}
		if !options.BatchJobRecovery.Get(w.Options) {
			continue
		}
		j, err := job(w, unread)
		if err != nil {
			return nil, nil, err
		}
		found, err := cluster.CheckRecovery(j, w.Options)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: cell %s: %w", f.Path, c.ID, err)
		}
		for _, u := range found {
			if seen[u] {
				continue
			}
			seen[u] = true
			p, partial := tell(f, u, w.Options)
			if partial {
				warnings = append(warnings, p)
			} else {
				problems = append(problems, p)
			}
		}
	}
	return problems, warnings, nil
}

// tell says it at the vertex, with the nearest right thing.
func tell(f *spec.File, u cluster.Unrecoverable, v options.Values) (p spec.Problem, partial bool) {
	hint := fmt.Sprintf("set options.%q = false", options.BatchJobRecovery.Key())
	if mode := options.BatchRecoveryMode; mode.Get(v) == "faithful" {
		hint = fmt.Sprintf("set options.%q = \"hardened\", which can", mode.Key())
	}
	message := "cannot be recovered when the master is lost: " + u.Reason
	if u.Partial {
		message = "can be recovered only as a whole when the master is lost: " + u.Reason
	}
	return f.AtVertex(u.Vertex, message, hint), u.Partial
}
