package task

import "benchrun/runtime/record"

// valve combines the watermarks of all channels of a task: the minimum over
// those that are active. Idle channels do not hold it back.
type valve struct {
	marks  []int64
	active []bool
	open   []bool
	sent   int64
	idle   bool // all channels are idle, as was passed on
}

func newValve(channels int) *valve {
	v := &valve{marks: make([]int64, channels), active: make([]bool, channels), open: make([]bool, channels), sent: record.MinWatermark}
	for i := range v.marks {
		v.marks[i], v.active[i], v.open[i] = record.MinWatermark, true, true
	}
	return v
}

// watermark takes one of a channel; ok tells that the combined one moved.
func (v *valve) watermark(ch int, t int64) (combined int64, ok bool) {
	if t <= v.marks[ch] {
		return 0, false
	}
	held := v.marks[ch] <= v.sent // only then was this channel the slowest
	v.marks[ch] = t
	if !held {
		return 0, false
	}
	return v.combine()
}

// status takes one of a channel. changed tells that the task's own status
// changed; a watermark that was held back may move as well: one that came while
// the channel was idle counts from now.
func (v *valve) status(ch int, active bool) (combined int64, ok, changed bool) {
	v.active[ch] = active
	return v.update()
}

// close takes a channel that has ended out of the combination. After the last
// one the watermark is the largest. A channel that is idle may still have
// something to say when the active ones have ended, so until it ends, too, the
// watermark stands and the task is idle.
func (v *valve) close(ch int) (combined int64, ok, changed bool) {
	v.open[ch] = false
	return v.update()
}

func (v *valve) update() (combined int64, ok, changed bool) {
	idle := false
	for i := range v.open {
		if v.open[i] {
			if idle = !v.active[i]; !idle {
				break
			}
		}
	}
	changed = idle != v.idle
	v.idle = idle
	combined, ok = v.combine()
	return combined, ok, changed
}

func (v *valve) combine() (int64, bool) {
	least, open, active := record.MaxWatermark, false, false
	for i, t := range v.marks {
		if !v.open[i] {
			continue
		}
		open = true
		if v.active[i] {
			active = true
			least = min(least, t)
		}
	}
	if open && !active || least <= v.sent {
		return 0, false
	}
	v.sent = least
	return least, true
}
