package plan

import (
	"time"

	"benchrun/runtime/options"
	"benchrun/workloads/spec"
)

// Estimate says what a run will take. It is rough: it knows the scenario and
// the options, not the machine.
type Estimate struct {
	Trial  time.Duration // mean over the trials
	Total  time.Duration
	AtMost time.Duration // all trials at their time-out
	Disk   int64         // peak bytes below the run folder
}

// What a trial costs besides its scenario, and what its files take; measured
// on a small machine.
const (
	startCost      = 300 * time.Millisecond
	finishCost     = 500 * time.Millisecond
	faultCost      = 200 * time.Millisecond
	trialFiles     = 300 << 10 // events, log
	reportFiles    = 5 << 20
	maxCaptureRate = 200 << 20 // bytes/s of in-flight data that are filled
)

// Estimate sums up the plan.
func (p *Plan) Estimate() Estimate {
	var e Estimate
	type cost struct {
		time time.Duration
		disk int64
	}
	costs := map[string]cost{}
	for _, s := range p.Order {
		key := s.Workload + "/" + s.Cell
		c, ok := costs[key]
		f := p.File(s.Workload)
		if !ok {
			w, err := f.Resolve(s.Cell)
			if err != nil {
				continue // a plan holds cells of its files only
			}
			c = cost{trialTime(w), trialDisk(w)}
			costs[key] = c
		}
		e.Total += c.time
		e.AtMost += f.Run.TrialTimeout
		e.Disk = max(e.Disk, c.disk)
	}
	e.Trial = e.Total / time.Duration(len(p.Order))
	e.Disk += int64(len(p.Order))*trialFiles + reportFiles
	return e
}

// TrialTime estimates what one trial of a cell takes.
func TrialTime(w *spec.Workload) time.Duration { return trialTime(w) }

// trialTime walks the scenario.
func trialTime(w *spec.Workload) time.Duration {
	if w.Mode == spec.Batch {
		return batchTime(w)
	}
	interval := options.CheckpointInterval.Get(w.Options)
	total := startCost
	inflight := int64(0)
	drain := func() time.Duration { return min(drainTime(w, inflight), 10*time.Minute) }
	for _, s := range w.Steps {
		if s.Do != nil {
			switch {
			case s.Do.Kind == "finish":
				total += finishCost + bounded(w)
			case s.Do.IsFault():
				total += faultCost
			default:
				total += interval / 4
			}
			continue
		}
		t := s.Wait.Elapsed
		if n := s.Wait.Checkpoints; n > 0 {
			t = max(t, time.Duration(n)*interval)
		}
		if s.Wait.InFlight > 0 {
			inflight = s.Wait.InFlight
			fill := time.Duration(float64(inflight) / maxCaptureRate * float64(time.Second))
			t = max(t, fill+interval)
		}
		if s.Wait.FirstCheckpoint {
			first := interval
			if !options.DuringRecovery.Get(w.Options) {
				first += drain()
			}
			t = max(t, first)
		}
		if s.Wait.Drained {
			t = max(t, drain())
		}
		if s.Wait.CaughtUp {
			t = max(t, 4*time.Second)
		}
		total += min(t, s.Wait.Timeout)
	}
	return min(total, w.Run.TrialTimeout)
}

// drainTime is how long the slowest vertex takes for the in-flight data.
func drainTime(w *spec.Workload, bytes int64) time.Duration {
	size := int64(0)
	for _, v := range w.Vertices {
		size = max(size, v.Params.RecordSize)
	}
	if size == 0 {
		size = 100
	}
	slowest := time.Duration(0)
	for _, v := range w.Vertices {
		slowest = max(slowest, v.Params.Cost/time.Duration(v.Parallelism))
	}
	return time.Duration(bytes/size) * slowest
}

// bounded is how long the sources take that end by themselves.
func bounded(w *spec.Workload) time.Duration {
	longest := time.Duration(0)
	for _, v := range w.Vertices {
		if v.Params.Records > 0 && v.Params.Rate > 0 {
			longest = max(longest, time.Duration(float64(v.Params.Records)/v.Params.Rate*float64(time.Second)))
		}
	}
	return longest
}

// trialDisk is the peak of a trial's checkpoints and spill, or of the partitions
// of a batch job.
func trialDisk(w *spec.Workload) int64 {
	if w.Mode == spec.Batch {
		return batchBytes(w)
	}
	inflight, state := int64(0), int64(0)
	for _, s := range w.Steps {
		if s.Wait != nil {
			inflight = max(inflight, s.Wait.InFlight)
		}
	}
	keys := int64(0)
	for _, v := range w.Vertices {
		keys = max(keys, v.Params.Keys)
	}
	for _, v := range w.Vertices {
		state += keys * v.Params.StateSize
	}
	copies := int64(options.NumRetained.Get(w.Options) + 1)
	return copies*(inflight+state) + inflight // and spill
}
