package cluster

import (
	"time"

	"benchrun/runtime/timeline"
)

// Where the system has one monotonic clock for all processes, a cluster's
// processes share it: origins are given as readings of that clock, and stamps
// need no correction.

// pinSystemClock finds an instant of this process's time and the reading of
// the machine's clock at it, the best of a few.
func pinSystemClock() (now time.Time, at time.Duration, ok bool) {
	best := time.Duration(-1)
	for range 5 {
		a := time.Now()
		reading, there := systemClock()
		d := time.Since(a)
		if !there {
			return now, 0, false
		}
		if best < 0 || d < best {
			best, now, at = d, a.Add(d/2), reading
		}
	}
	return now, at, true
}

// originOnSystemClock is the reading of the machine's clock at a log's origin.
func originOnSystemClock(log *timeline.Log) (time.Duration, bool) {
	now, at, ok := pinSystemClock()
	return at + log.Origin().Sub(now), ok
}

// originFromSystemClock is the instant at which the machine's clock had a
// reading.
func originFromSystemClock(origin time.Duration) (time.Time, bool) {
	now, at, ok := pinSystemClock()
	return now.Add(origin - at), ok
}

// clockRounds is how often a process asks for the time where it has to guess
// how far its clock is off.
const clockRounds = 8

// estimateOrigin finds the origin of another process's clock by asking for its
// time. The true one is at most bound away: the answer was read between
// question and receipt. The round with the least bound wins.
func estimateOrigin(ask func() (at time.Duration, err error)) (origin time.Time, bound time.Duration, err error) {
	bound = -1
	for range clockRounds {
		begin := time.Now()
		at, err := ask()
		if err != nil {
			return origin, bound, err
		}
		half := time.Since(begin) / 2
		if bound < 0 || half < bound {
			origin, bound = begin.Add(half-at), half
		}
	}
	return origin, bound, nil
}
