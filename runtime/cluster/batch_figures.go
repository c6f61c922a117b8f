package cluster

import (
	"fmt"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/timeline"
)

// BatchFigures is the account of a batch job over all its masters. A nil number
// is not known.
type BatchFigures struct {
	HookTime  time.Duration // that masters spent in recording what happened; as LogBytes, not known if that is not
	WriterCPU time.Duration // of the log's writer; likewise
	LogBytes  *int64        // nil: a master died and nobody knows what it had recorded
	Flushes   *int64
	// DurabilityGap is how many tasks had finished when the first master died,
	// and were not in its log.
	DurabilityGap *int64
	Leftover      *int64 // bytes on workers' disks after the job's end, before they were cleaned; nil if Unheard
	// Unheard are workers that have not said what they had left when the job was over,
	// or were to come to a folder of one that had died, and had not.
	Unheard []string
}

// ledger sums over masters.
type ledger struct {
	sum     control.BatchFigures
	gap     *int64
	dead    int
	unknown bool // what one of them had recorded
}

func (l *ledger) add(f control.BatchFigures) {
	l.sum.HookTime += f.HookTime
	l.sum.WriterCPU += f.WriterCPU
	l.sum.LogBytes += f.LogBytes
	l.sum.Flushes += f.Flushes
}

// died takes the figures of a master at the instant of its death.
func (l *ledger) died(f control.BatchFigures) {
	l.add(f)
	if l.dead++; l.dead == 1 {
		gap := int64(f.GapTasks)
		l.gap = &gap
	}
}

// silent is the death of a master of which nobody knows what it had recorded.
func (l *ledger) silent() {
	l.dead++
	l.unknown = true
}

// now takes those of a master that lives.
func (l *ledger) now(f control.BatchFigures) {
	l.add(f)
	l.sum.Leftover, l.sum.Heard, l.sum.Ended = f.Leftover, f.Heard, f.Ended
}

// figures are all of it. Who has said nothing is known once the job is over.
func (l *ledger) figures(folders *folders) *BatchFigures {
	f := &BatchFigures{HookTime: l.sum.HookTime, WriterCPU: l.sum.WriterCPU, DurabilityGap: l.gap}
	if !l.unknown {
		f.LogBytes, f.Flushes = &l.sum.LogBytes, &l.sum.Flushes
	}
	if l.sum.Ended {
		for _, i := range folders.unheard(l.sum.Heard) {
			f.Unheard = append(f.Unheard, workerName(i))
		}
		if len(f.Unheard) == 0 {
			f.Leftover = &l.sum.Leftover
		}
	}
	return f
}

// masterEnded says that the supervisor has seen the master of an epoch end; 0: of none.
func masterEnded(epoch int64, why string) timeline.Event {
	e := timeline.Job(timeline.Suspended, why)
	e.Detail = timeline.Supervisor
	if epoch > 0 {
		e.Detail += fmt.Sprintf(" epoch=%d", epoch)
	}
	return e
}

// submitted says when the first master had its job.
func submitted(at time.Duration) timeline.Event {
	e := timeline.Job(timeline.Submitted, "")
	e.T = at
	return e
}

func elected(detail string) timeline.Event {
	e := timeline.Of(timeline.MasterElected)
	e.Detail = detail
	return e
}
