package master

import (
	"context"

	"benchrun/runtime/control"
	"benchrun/runtime/task"
)

// results keeps what operators report when their task finishes. A task that
// had finished when a checkpoint was taken is not run again from there, so its
// report stays; the reports of all others go when the job restores.
type results struct {
	reports map[task.ID][]control.Report
	settled []control.Report
}

// keepSettled drops the reports that a restore makes untrue.
func (m *Master) keepSettled(r *prepared) {
	var keep []control.Report
	if r.meta != nil {
		for _, id := range m.settled[r.id] {
			keep = append(keep, m.results.reports[id]...)
			keep = append(keep, m.results.of(id)...)
		}
	}
	m.results.settled = keep
	m.results.reports = map[task.ID][]control.Report{}
}

// of finds settled reports of an attempt.
func (r *results) of(id task.ID) (found []control.Report) {
	for _, x := range r.settled {
		if x.Task == id {
			found = append(found, x)
		}
	}
	return found
}

// Reports are what the operators of a finished job reported.
func (m *Master) Reports(ctx context.Context) []control.Report {
	got := make(chan []control.Report, 1)
	m.post(func() {
		all := append([]control.Report(nil), m.results.settled...)
		for _, x := range m.results.reports {
			all = append(all, x...)
		}
		got <- all
	})
	select {
	case all := <-got:
		return all
	case <-ctx.Done():
	case <-m.loopDone:
	}
	return nil
}
