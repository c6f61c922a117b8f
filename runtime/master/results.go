package master

import (
	"context"
	"slices"

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

// keepSettled drops the reports that a restore of some vertices makes untrue.
func (m *Master) keepSettled(r *prepared, vertices []string) {
	settled := map[task.ID]bool{}
	if r.meta != nil {
		for _, id := range m.settled[r.id] {
			settled[id] = true
		}
	}
	stays := func(id task.ID) bool { return settled[id] || !slices.Contains(vertices, id.Vertex) }
	keep := slices.DeleteFunc(m.results.settled, func(x control.Report) bool { return !stays(x.Task) })
	for id, reports := range m.results.reports {
		if stays(id) {
			keep = append(keep, reports...)
		}
	}
	m.results.settled = keep
	m.results.reports = map[task.ID][]control.Report{}
}

// finished adds those that had finished before the last restore: what the job
// restores from now on builds on their results as well.
func (r *results) finished(now []task.ID) []task.ID {
	for _, x := range r.settled {
		if !slices.Contains(now, x.Task) {
			now = append(now, x.Task)
		}
	}
	return now
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

// Reports are what the operators of a finished job reported; nil if nobody can
// tell any more.
func (m *Master) Reports(ctx context.Context) []control.Report {
	var all []control.Report
	if m.loop.ask(ctx, func() error {
		all = slices.Clone(m.results.settled)
		for _, x := range m.results.reports {
			all = append(all, x...)
		}
		return nil
	}) != nil {
		return nil
	}
	return all
}
