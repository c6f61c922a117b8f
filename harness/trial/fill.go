package trial

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"syscall"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/runtime/options"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// fill puts what came of the execution into the trial.
func (e *execution) fill(t *result.Trial, err error) {
	if err == nil {
		err = e.check()
	}
	if e.out != nil && e.out.Proved {
		t.Correctness = &result.Correctness{
			Expected: e.out.Expected, Received: e.out.Received, Lost: e.out.Lost, Duplicated: e.out.Duplicated, OutOfOrder: e.out.OutOfOrder,
			Digest: e.out.Digest, ExpectedDigest: e.out.ExpectedDigest,
		}
	}
	t.Resources = ownResources()
	if a, ok := e.job.(target.Accountant); ok {
		addUsage(t.Resources, a.Usage())
	}
	if e.job != nil {
		net := e.last.NetBytes
		t.Resources.NetBytes = &net
	}
	if err != nil {
		var s *stop
		if !errors.As(err, &s) {
			s = &stop{result.Failed, err.Error()}
		}
		t.Outcome, t.Reason, t.Phase = s.outcome, s.reason, e.phase
		return
	}
	events := e.Log.Sorted()
	batch := e.Workload.Mode == spec.Batch
	if batch {
		t.Faults = measureBatch(events, e.windows, consumersOf(e.Workload), options.BatchJobRecovery.Get(e.Workload.Options))
	} else {
		t.Faults = Measure(events, e.windows)
	}
	t.Metrics = map[string]float64{}
	if len(t.Faults) > 0 {
		maps.Copy(t.Metrics, t.Faults[0].Metrics)
		t.RecoveryPath = t.Faults[0].RecoveryPath
	}
	if batch {
		e.wholeBatch(t, events)
	} else {
		e.whole(t, events)
	}
	clean(t.Metrics)
	for _, f := range t.Faults {
		clean(f.Metrics)
	}
}

// addUsage adds what other processes of the trial have used. A sum of which a
// part is not known is not known.
func addUsage(r *result.Resources, u target.Usage) {
	if u.Processes == 0 {
		return
	}
	if r.CPUS != nil {
		cpu := *r.CPUS + u.CPU.Seconds()
		r.CPUS = &cpu
	}
	if r.MaxRSSBytes != nil {
		rss := *r.MaxRSSBytes + u.MaxRSS
		r.MaxRSSBytes = &rss
	}
	r.ReadBytes, r.WrittenBytes = plus(r.ReadBytes, u.ReadBytes), plus(r.WrittenBytes, u.WrittenBytes)
}

func plus(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	sum := *a + *b
	return &sum
}

// check holds the output and the timeline to what a measurement needs.
func (e *execution) check() error {
	if n := e.Log.Dropped(); n > 0 {
		return stopf(result.Failed, "the timeline was full: %d events are missing", n)
	}
	if err := e.starved(); err != nil {
		return err
	}
	o := e.out
	if o == nil {
		return nil
	}
	var reasons []string
	if o.Proved && (o.Lost != 0 || o.Duplicated != 0 || o.Received != o.Expected) {
		reasons = append(reasons, fmt.Sprintf("%d records expected, %d received, %d lost, %d duplicated", o.Expected, o.Received, o.Lost, o.Duplicated))
	}
	if o.Proved && o.Digest != o.ExpectedDigest {
		reasons = append(reasons, "the digest is "+o.Digest+", not "+o.ExpectedDigest)
	}
	reasons = append(reasons, o.Wrong...)
	switch {
	case len(reasons) > 0:
		e.phase = "finish"
		return &stop{result.Incorrect, "wrong output: " + strings.Join(reasons, "; ")}
	case o.Proved && o.Expected == 0 && o.Received == 0:
		e.phase = "finish"
		return stopf(result.Failed, "the job produced nothing, so nothing is proved")
	}
	return nil
}

// starved finds a full disk that no fault asked for: the times of such a trial
// are those of the disk, not of the recovery.
func (e *execution) starved() error {
	for _, w := range e.windows {
		if w.Kind == "fail-storage" {
			return nil
		}
	}
	full := syscall.ENOSPC.Error()
	for _, ev := range e.Log.Events() {
		if strings.Contains(ev.Reason, full) || strings.Contains(ev.Detail, full) {
			return stopf(result.Failed, "a disk was full (%s %s %s)", ev.Kind, ev.Reason, ev.Detail)
		}
	}
	return nil
}

// whole computes the metrics that belong to no fault.
func (e *execution) whole(t *result.Trial, events []timeline.Event) {
	from, to := time.Duration(-1), e.finish
	for _, ev := range events {
		if ev.Kind == timeline.CheckpointCompleted {
			from = ev.T
			break
		}
	}
	faults := 0
	for _, w := range e.windows {
		if w.Kind == result.StartFault {
			continue
		}
		if faults == 0 {
			to = w.T0
		}
		faults++
	}
	if from >= 0 && to > from {
		if rate, ok := throughputOf(events, from, to); ok {
			t.Metrics["throughput_records_per_s"] = rate
		}
	}
	// Arrivals beyond those expected are replays; whose, is only known if there was one fault.
	if extra := e.last.SinkRecords - e.expected(); faults == 1 && e.expected() > 0 && extra >= 0 && len(t.Faults) == 1 {
		t.Metrics["reprocessed_records"] = float64(extra)
		t.Faults[0].Metrics["reprocessed_records"] = float64(extra)
	}
}

func (e *execution) expected() int64 {
	if e.out == nil || !e.out.Proved {
		return 0
	}
	return e.out.Expected
}

// clean drops numbers that JSON has no words for, and negative ones: what
// cannot be known is absent.
func clean(metrics map[string]float64) {
	for k, v := range metrics {
		if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
			delete(metrics, k)
		}
	}
}
