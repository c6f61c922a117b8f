package trial

import (
	"fmt"
	"time"

	"benchrun/harness/result"
)

// What a number does not say of a trial that is ok: why there is none, and what else
// to know of it.

// lacks says at a moment of the timeline why a metric is absent.
func (e *execution) lacks(t *result.Trial, at time.Duration, metric, why string) {
	if t.Absent == nil {
		t.Absent = map[string]string{}
	}
	t.Absent[metric] = why
	fmt.Fprintf(e.Stderr, "%8.3f s  %s is not known: %s\n", at.Seconds(), metric, why)
}

// unrecovered says of each loss of a master after which no task was left to run
// that there was no control recovery.
func (e *execution) unrecovered(t *result.Trial, end time.Duration) {
	const metric = "control_recovery_s"
	for i, f := range t.Faults {
		until := time.Duration(1<<63 - 1)
		if i+1 < len(e.windows) {
			until = e.windows[i+1].T0
		}
		if _, ok := f.Metrics[metric]; ok || f.Kind != killMaster || end < e.windows[i].T0 || end >= until {
			continue
		}
		name := metric
		if i > 0 {
			name = f.Name + "." + metric
		}
		e.lacks(t, end, name, "no task was left to run when the next master led")
	}
}
