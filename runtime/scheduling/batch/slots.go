package batch

import (
	"fmt"
	"time"

	"benchrun/runtime/scheduling"
)

// NoSlotError: the workers that are there have fewer slots than a task asks for,
// whoever occupies them.
type NoSlotError struct {
	Task           TaskID // the first one in order
	Needed         int    // slots, with those of the tasks to which pipelines connect it
	Slots, Workers int    // that are there
	Since          time.Duration
	Waited         time.Duration // 0: it still waits
	Lost           error         // how the last worker went that did; nil: none has
}

func (e *NoSlotError) Error() string {
	text := fmt.Sprintf("no slot for task %s since t=%v: slots needed %d, there %d, workers %d", e.Task, e.Since.Round(time.Millisecond), e.Needed, e.Slots, e.Workers)
	if e.Waited > 0 {
		text += fmt.Sprintf(", after %v", e.Waited.Round(time.Millisecond))
	}
	if e.Lost != nil {
		text += fmt.Sprintf(" (%v)", e.Lost)
	}
	if e.Waited > 0 {
		text += "; add workers or slots, replace workers that are lost (replace-after), or wait longer (slot.request.timeout)"
	}
	return text
}

func (e *NoSlotError) Unwrap() error { return e.Lost }

// awaitSlots says how the job stands while tasks wait for slots that do not exist,
// and gives it up after SlotTimeout. Tasks that wait for others to end do not
// count: they run in waves.
func (s *Scheduler) awaitSlots() {
	if s.phase != phaseRunning {
		return
	}
	s.queueUp()
	short := s.short()
	if short == nil {
		s.shortage = nil
		if len(s.restarts) == 0 {
			s.setStatus(scheduling.StatusRunning, nil)
		}
		return
	}
	begins := s.shortage == nil
	if !begins {
		short.Since = s.shortage.Since
	}
	s.shortage = short
	if due := s.slotsDue(); due != never && s.now >= due {
		short.Waited = s.now - short.Since
		s.end(scheduling.StatusFailed, short)
		return
	}
	if begins { // also of a job that restarts anyway: that is not what it waits for
		s.status = scheduling.StatusRestarting
		s.emit(JobStatus{Status: s.status, Err: short})
	}
}

// slotsDue is when the job is given up for want of slots.
func (s *Scheduler) slotsDue() time.Duration {
	if s.shortage == nil || s.cfg.SlotTimeout <= 0 {
		return never
	}
	return s.shortage.Since + s.cfg.SlotTimeout
}

// short finds a task that all slots together would not be enough for.
func (s *Scheduler) short() *NoSlotError {
	slots := 0
	for _, w := range s.workers {
		slots += w.slots
	}
	if slots > 0 && !s.pipelined {
		return nil
	}
	for _, t := range s.ready {
		if n := len(t.group()); n > slots && t.placeable() {
			return &NoSlotError{Task: t.id(), Needed: n, Slots: slots, Workers: len(s.workers), Since: s.now, Lost: s.lost}
		}
	}
	return nil
}

// placeable tells whether a task and those of its region want for nothing but
// slots.
func (t *task) placeable() bool {
	for _, m := range t.group() {
		if m.state != created || m.restart != nil || !m.consumable() {
			return false
		}
	}
	return true
}
