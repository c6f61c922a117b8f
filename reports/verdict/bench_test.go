package verdict

import (
	"fmt"
	"math"
	"testing"
	"time"

	"benchrun/harness/result"
)

// thousand is a run of a thousand cells, two builds and ten blocks, each trial
// with eight metrics.
func thousand() *result.Loaded {
	cells := make([]string, 1000)
	for i := range cells {
		cells[i] = fmt.Sprintf("n=%d", i)
	}
	r := lab{cells: cells, blocks: 10, value: times(1.02)}.run()
	for i := range r.Trials {
		t := &r.Trials[i]
		x := t.Metrics[primary] * (1 + 0.05*math.Sin(float64(i)))
		t.Metrics[primary] = x
		for k, m := range []string{"detect_s", "time_to_deploying_s", "time_to_initializing_s", "time_to_running_s", "time_to_first_output_s", "time_to_drained_s", "throughput_records_per_s"} {
			t.Metrics[m] = x * float64(k+1)
		}
	}
	return r
}

func BenchmarkDecide(b *testing.B) {
	r := thousand()
	for b.Loop() {
		Decide(r, nil, Rules{})
	}
}

func BenchmarkDecideApart(b *testing.B) {
	r, base := single(thousand(), "head"), single(thousand(), "base")
	base.Run.Run = "before"
	for b.Loop() {
		Decide(r, func(string) *result.Loaded { return base }, Rules{})
	}
}

func BenchmarkSummarize(b *testing.B) {
	r := thousand()
	for b.Loop() {
		Summarize(r)
	}
}

// single is the part of a run that one build ran.
func single(l *result.Loaded, build string) *result.Loaded {
	out := *l
	out.Run.BaseBuild = ""
	out.Run.Builds = map[string]result.Build{build: l.Run.Builds[build]}
	out.Run.Plan.Order, out.Trials = nil, nil
	for _, s := range l.Run.Plan.Order {
		if s.Build == build {
			s.Build = "this"
			out.Run.Plan.Order = append(out.Run.Plan.Order, s)
		}
	}
	for _, t := range l.Trials {
		if t.Build == build {
			t.Build = "this"
			out.Trials = append(out.Trials, t)
		}
	}
	out.Run.Builds = map[string]result.Build{"this": l.Run.Builds[build]}
	out.Run.Plan.Trials = len(out.Run.Plan.Order)
	return &out
}

// TestThousandCells holds the comparison of a thousand cells far below the two
// seconds that it may take on an idle machine. Fails if the bootstrap draws
// 10,000 resamples.
func TestThousandCells(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped: -short")
	}
	r := thousand()
	start := time.Now()
	Decide(r, nil, Rules{})
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("%v", took)
	} else {
		t.Log(took)
	}
}
