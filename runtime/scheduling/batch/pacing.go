package batch

import "time"

// Restarts whose strategy sets no delay: the first is at once, those behind it
// without progress wait restartPause, doubling up to restartPauseMax. Else what
// fails for good, a full disk for one, would spin.
const (
	restartPause    = 10 * time.Millisecond
	restartPauseMax = time.Second
)

// setback counts failures since there was progress.
type setback int

// next counts one more, and says how long to wait before another try.
func (n *setback) next() time.Duration {
	*n++
	if *n == 1 {
		return 0
	}
	const doublings = 7 // beyond which it is the maximum
	return min(restartPause<<min(int(*n)-2, doublings), restartPauseMax)
}

// pace is next for all that has failed at one go: tasks that have not finished
// since they failed last, or the whole job of which no task has.
func (s *Scheduler) pace(failed []*task, global bool) (pause time.Duration) {
	if global {
		return s.setbacks.next()
	}
	counted := map[*task]bool{}
	for _, t := range failed {
		if !counted[t] {
			counted[t] = true
			pause = max(pause, t.setbacks.next())
		}
	}
	return pause
}
