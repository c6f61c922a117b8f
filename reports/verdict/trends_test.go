package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
)

// nights are runs of one after another, the head slower by factor from the
// night change on. Each night the machine has a pace of its own.
func nights(n, change int, factor float64, seed uint64) []*result.Loaded {
	r := rand.New(rand.NewPCG(seed, 1))
	out := make([]*result.Loaded, n)
	for i := range out {
		pace := math.Exp(0.1 * r.NormFloat64())
		run := lab{name: fmt.Sprintf("night-%02d", i), blocks: 8, value: func(cell, build string, block int) (float64, result.Outcome) {
			x := pace * math.Exp(noises["model"](r))
			if build == "head" && i >= change {
				x *= factor
			}
			return x, result.OK
		}}.run()
		run.Run.Started = run.Run.Started.AddDate(0, 0, i)
		run.Run.Builds["head"] = result.Build{Revision: fmt.Sprintf("rev-%02d", i), SHA256: fmt.Sprint(i)}
		out[i] = run
	}
	return out
}

// TestTrendNamesTheNight: ten nights with a planted change, whose order does
// not matter. Fails if the raw medians are looked at: the pace of the nights
// hides the change.
func TestTrendNamesTheNight(t *testing.T) {
	runs := nights(10, 6, 1.25, 3)
	slices.Reverse(runs)
	tr := Trends(runs)
	if len(tr.Nights) != 10 || len(tr.Series) != 2 || len(tr.Warnings) > 0 {
		t.Fatalf("%+v", tr)
	}
	for _, s := range tr.Series {
		if s.Unit != "ratio" || len(s.Points) != 10 || s.Points[0].Low == nil {
			t.Errorf("%+v", s)
		}
		if len(s.Changes) != 1 {
			t.Fatalf("%s: %+v", s.Cell, s.Changes)
		}
		c := s.Changes[0]
		if c.Night != 6 || c.From != "rev-05" || c.To != "rev-06" || c.Verdict != Slower || math.Abs(c.Size-0.25) > 0.08 || c.P > trendP || !c.Date.Equal(tr.Nights[6].Date) {
			t.Errorf("%+v", c)
		}
	}
	if tr.Nights[0].Reference != "rev-base" || tr.Nights[3].Revision != "rev-03" || tr.Nights[3].Note != "" || !strings.Contains(tr.Nights[0].Machine, "cpu") {
		t.Errorf("%+v", tr.Nights)
	}
}

// TestTrendRates: of quiet series few have a change, and most planted ones are
// found in their night or beside it. Fails if trendSize is 0 and trendP 0.5.
func TestTrendRates(t *testing.T) {
	const rounds = 60
	cried, found, series := 0, 0, 0
	for k := range uint64(rounds) {
		for _, s := range Trends(nights(10, 99, 1, k)).Series {
			series++
			if len(s.Changes) > 0 {
				cried++
			}
		}
		for _, s := range Trends(nights(10, 6, 1.2, k)).Series {
			if slices.ContainsFunc(s.Changes, func(c Change) bool { return c.Night >= 5 && c.Night <= 7 && c.Verdict == Slower }) {
				found++
			}
		}
	}
	t.Logf("of %d series %d false changes, %d planted ones found", series, cried, found)
	if cried > series*4/100 || found < series*90/100 {
		t.Errorf("of %d series %d false changes, %d planted ones found", series, cried, found)
	}
}

// TestTrendCut: a step of half lies exactly where something else changed, and
// is no change of the head; one that comes later is found. Fails if changes are
// sought over the whole series, or if one of the causes is not looked at.
func TestTrendCut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*result.Run)
		want   string
	}{
		"reference": {func(r *result.Run) { r.Builds["base"] = result.Build{Revision: "newer"} }, "another reference build: newer, not rev-base"},
		"text":      {func(r *result.Run) { r.Workloads[0].SHA256, r.Workloads[0].Text = "other", "name = \"x\"\n" }, `another text of the workload: line 1 is "name = \"x\""`},
		"machine":   {func(r *result.Run) { r.Machine.CPUModel = "new" }, "CPU model: new, not cpu"},
		"overrides": {func(r *result.Run) { r.Overrides = []string{"cluster.workers=8"} }, "overrides"},
	} {
		t.Run(name, func(t *testing.T) {
			runs := slices.Concat(nights(10, 99, 1, 3), nights(20, 16, 1.4, 4)[10:])
			for i, l := range runs[10:] {
				l.Run.Workloads = slices.Clone(l.Run.Workloads)
				c.change(&l.Run)
				for k := range l.Trials {
					if x := &l.Trials[k]; x.Build == "head" {
						for m := range x.Metrics {
							x.Metrics[m] *= 1.5
						}
					}
				}
				runs[10+i] = l
			}
			tr := Trends(runs)
			for _, s := range tr.Series {
				for i, p := range s.Points {
					if (p.Cut != "") != (i == 10) {
						t.Errorf("night %d: cut %q", i, p.Cut)
					}
				}
				if !strings.Contains(s.Points[10].Cut, c.want) {
					t.Errorf("cut %q, want %q", s.Points[10].Cut, c.want)
				}
				if len(s.Changes) != 1 || s.Changes[0].Night != 16 {
					t.Errorf("changes %+v", s.Changes)
				}
			}
			wantWarning(t, tr.Warnings, "w is cut before", "changes are looked for on either side alone")
		})
	}
}

// TestTrendOddities: runs that are there twice, one night, gaps, raw medians,
// and what changed beside the revision.
func TestTrendOddities(t *testing.T) {
	runs := nights(3, 99, 1, 5)
	t.Run("none", func(t *testing.T) {
		if tr := Trends(nil); tr.Nights == nil || tr.Series == nil {
			t.Errorf("%+v", tr)
		} else {
			wantWarning(t, tr.Warnings, "there is no night")
		}
	})
	t.Run("one", func(t *testing.T) {
		tr := Trends(runs[:1])
		wantWarning(t, tr.Warnings, "one night is no trend")
		if len(tr.Series[0].Points) != 1 || len(tr.Series[0].Changes) != 0 {
			t.Errorf("%+v", tr.Series)
		}
	})
	t.Run("twice", func(t *testing.T) {
		tr := Trends([]*result.Loaded{runs[0], runs[1], runs[0]})
		wantWarning(t, tr.Warnings, "night-00 is there twice")
		if len(tr.Nights) != 2 || len(tr.Series[0].Points) != 2 {
			t.Errorf("%+v", tr)
		}
	})
	t.Run("missing", func(t *testing.T) {
		runs := nights(3, 99, 1, 5)
		runs[1].Trials = slices.DeleteFunc(runs[1].Trials, func(x result.Trial) bool { return x.Cell == "D=true" })
		tr := Trends(runs)
		wantWarning(t, tr.Warnings, "night-01: w D=true has no value")
		wantWarning(t, tr.Warnings, "w D=true", "2 of 3 nights have a value")
		if p := tr.Series[1].Points; len(p) != 2 || p[1].Night != 2 {
			t.Errorf("%+v", p)
		}
	})
	t.Run("one build", func(t *testing.T) {
		raw := single(runs[1], "head")
		raw.Run.Run = "raw"
		tr := Trends([]*result.Loaded{runs[0], raw})
		wantWarning(t, tr.Warnings, "1 of 2 nights have no reference build")
		units := map[string]int{}
		for _, s := range tr.Series {
			units[s.Unit]++
		}
		if units["ratio"] != 2 || units["s"] != 2 {
			t.Errorf("%v", units)
		}
	})
	t.Run("notes", func(t *testing.T) {
		runs := nights(4, 99, 1, 5)
		runs[1].Run.Machine.Kernel = "6.13.0"
		runs[2].Run.Machine = runs[1].Run.Machine
		runs[2].Run.Machine.CPUModel = "new"
		runs[2].Run.Workloads = slices.Clone(runs[2].Run.Workloads)
		runs[2].Run.Workloads[0].SHA256 = "other"
		runs[3].Run.Machine, runs[3].Run.Workloads = runs[2].Run.Machine, runs[2].Run.Workloads
		runs[3].Run.Builds["base"] = result.Build{Revision: "newer"}
		tr := Trends(runs)
		for i, want := range []string{"", "kernel: 6.13.0, not 6.12.1", "CPU model: new, not cpu; another text of w", "another reference build: newer, not rev-base"} {
			if got := tr.Nights[i].Note; got != want {
				t.Errorf("night %d: %q, want %q", i, got, want)
			}
		}
	})
	t.Run("same bytes", func(t *testing.T) {
		runs := nights(12, 6, 1.3, 9)
		runs[4].Run.Started = runs[5].Run.Started.Add(time.Hour)
		a, b := fmt.Sprintf("%+v", Trends(runs).Nights), ""
		slices.Reverse(runs)
		if b = fmt.Sprintf("%+v", Trends(runs).Nights); a != b {
			t.Errorf("%s\n%s", a, b)
		}
	})
}
