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
// changed; a watermark that was held back may move as well.
func (v *valve) status(ch int, active bool) (combined int64, ok, changed bool) {
	v.active[ch] = active
	idle := true
	for i := range v.active {
		if v.active[i] && v.open[i] {
			idle = false
			break
		}
	}
	changed = idle != v.idle
	v.idle = idle
	if active || idle {
		return 0, false, changed
	}
	combined, ok = v.combine()
	return combined, ok, changed
}

// close takes a channel that has ended out of the combination.
func (v *valve) close(ch int) (combined int64, ok bool) {
	v.open[ch] = false
	return v.combine()
}

func (v *valve) combine() (int64, bool) {
	least, any := record.MaxWatermark, false
	for i, t := range v.marks {
		if v.active[i] && v.open[i] {
			any = true
			least = min(least, t)
		}
	}
	if !any || least <= v.sent {
		return 0, false
	}
	v.sent = least
	return least, true
}
