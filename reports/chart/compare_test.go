package chart

import (
	"bytes"
	"image/color"
	"image/png"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func num(v float64) *float64 { return &v }

// odd are charts that have nothing, too much or nonsense in them, and plain
// ones.
func odd() map[string]picture {
	long := strings.Repeat("long name ", 20)
	nan, inf := math.NaN(), math.Inf(1)
	night := func(i int, v float64) NightPoint {
		return NightPoint{Night: i, Value: v, Low: num(v * 0.9), High: num(v * 1.1), Note: "n 8"}
	}
	effect := func(name string, r, low, high float64, verdict string) Effect {
		return Effect{Label: name, Ratio: &r, Low: &low, High: &high, Band: 0.1, N: 8, Planned: 8, Verdict: verdict}
	}
	return map[string]picture{
		"forest": &Forest{Title: "t", Reference: "base", Groups: []ForestGroup{{Name: "m", Rows: []Effect{
			effect("a", 0.05, 0.04, 0.06, "faster"), effect("b", 1.3, 1.2, 1.4, "slower"), effect("c", 1, 0.99, 1.01, "same"), effect("d", 1.1, 0.8, 1.5, "inconclusive"), {Label: "e", Why: "too few pairs"}}}}},
		"no forest":        &Forest{},
		"forest of one":    &Forest{Groups: []ForestGroup{{Rows: []Effect{effect("a", 1, 1, 1, "same")}}}},
		"forest of no sum": &Forest{Groups: []ForestGroup{{Rows: []Effect{effect("a", nan, nan, nan, "inconclusive"), effect("b", 0, 0, 0, "inconclusive"), effect("c", inf, 1, inf, "slower"), effect(long, -1, -2, 1, "x")}}}},
		"wide forest":      &Forest{Groups: []ForestGroup{{Rows: []Effect{effect("a", 1, 1e-12, 1e12, "inconclusive"), effect("b", 1e300, 1, inf, "slower")}}}},
		"hostile forest":   &Forest{Title: `<&">`, Reference: "<b>", Groups: []ForestGroup{{Name: `"&'`, Rows: []Effect{{Label: "<i>", Verdict: "<u>", Why: "&"}}}}},
		"heat": &Heat{Title: "t", Unit: "s", Row: "p", Column: "f", Rows: []string{"4", "8"}, Columns: []string{"a", "b"},
			Fields: [][]Field{{{Value: num(1), Sub: "8 of 8"}, {Value: num(90)}}, {{Why: "3 failed"}, {Value: &nan}}}},
		"no heat":      &Heat{},
		"heat of zero": &Heat{Unit: "B", Rows: []string{"a"}, Columns: []string{"b", long}, Fields: [][]Field{{{Value: num(0)}, {Value: num(0)}}}},
		"short heat":   &Heat{Rows: []string{"a", "b"}, Columns: []string{"c"}, Fields: [][]Field{{{Value: num(-1)}}}},
		"lines": &Lines{Title: "t", Unit: "ratio", Unity: true, Dates: []string{"2026-03-01", "2026-03-02", "2026-03-03"}, Points: []NightPoint{night(0, 1), night(1, 1.01), night(2, 1.2)},
			Changes: []Step{{Night: 2, Before: 1, After: 1.2, Verdict: "slower", Text: "2026-03-03: +20 %"}, {Night: 1, Before: 1.2, After: 1, Verdict: "faster", Text: "2026-03-02: −20 %"}}, Notes: []NightNote{{1, long}}},
		"no lines":      &Lines{},
		"one night":     &Lines{Unit: "s", Dates: []string{"d"}, Points: []NightPoint{night(0, 0)}},
		"lines of none": &Lines{Unit: "B", Dates: []string{"a", "b"}, Points: []NightPoint{night(0, nan), night(7, 1e9), night(1, inf)}},
		"decades":       &Lines{Unit: "s", Dates: []string{"a", "b"}, Points: []NightPoint{night(0, 1e-3), night(1, 1e3)}, Changes: []Step{{Night: 1, Before: 1e-3, After: 1e3, Verdict: "x", Text: "x"}}},
		"side by side": &SideBySide{Title: "t", From: -0.1, To: 3, Faults: []Mark{{T: 0, Text: "rescale", Fault: true}}, Rows: []Recovery{
			{Label: "a", Sub: "trial 1", Spans: []Span{{-1, 0, Running}, {0.1, 0.2, Deploying}, {0.2, 1, Initializing}, {1, 2, Draining}, {2, 9, Running}}, Safe: num(2), Drained: num(2.01),
				Checkpoints: []Checkpoint{{1, 0, 0.5, Failed, "x"}, {2, 1, 2, Completed, ""}, {3, 2, 99, Pending, ""}}, Rates: []Rate{{0, 5}, {1, nan}, {2, 7}}},
			{Label: "b", Safe: num(0.05), Drained: num(2.9), Ended: "timeout"}}},
		"none side by side": &SideBySide{},
		"timeline": &Timeline{From: 0, To: 4, Lanes: []Lane{{"v", [][]Span{{{0, 1, Deploying}, {1, 2, Initializing}, {2, 3, Draining}, {3, 4, Running}}}}}, Marks: []Mark{{1, "a", true}, {2, "b", false}},
			Checkpoints: []Checkpoint{{1, 0, 1, Failed, "x"}, {2, 1, 2, Completed, ""}, {3, 2, 3, Pending, ""}}, Rates: []Rate{{0, 1}, {1, 2}}},
		"stacked": &Stacked{Title: "t", Unit: "s", Series: []string{"a", "b", "c", "d", "e"}, Rows: []Sum{
			{Label: "x", Parts: []*float64{num(1), nil, num(0), num(2), num(0.5)}, Note: "n 5"}, {Label: "y", Why: "no master was lost"}}},
		"no stack":      &Stacked{},
		"hostile stack": &Stacked{Unit: "B", Series: []string{"<a>"}, Rows: []Sum{{Label: long, Parts: []*float64{num(-1), &nan, &inf, num(0), num(0), num(1e300), num(7)}}}},
		"work": &Work{Title: "t", To: 10, Rows: []Progress{
			{Label: "a", Steps: []WorkStep{{1, 0.3}, {3, 0.6}, {4, 0.1}, {8, 1}}, Outages: []Outage{{4, 5}}, Faults: []Mark{{T: 4, Text: "kill", Fault: true}, {T: 4.1, Text: "again", Fault: true}}, End: num(8)},
			{Label: "b", Steps: []WorkStep{{2, 0.2}}, Faults: []Mark{{T: 9.9, Text: long}}, Ended: "failed"}, {Label: "c"}}},
		"no work":      &Work{},
		"hostile work": &Work{To: 1, Rows: []Progress{{Label: "<&>", Steps: []WorkStep{{nan, 1}, {0.5, inf}, {-1, 1}, {99, 1}}, Outages: []Outage{{nan, 1}, {2, 1}, {0, inf}}, Faults: []Mark{{T: nan}}, End: &inf}}},
		"bars":         &Bars{Series: []string{"a", "b", "c", "d"}, Groups: []Group{{Label: "g", Values: []*float64{num(1), num(2), num(3), num(4)}}}},
		"points":       &Points{Rows: []Row{{Label: "a", Values: []Value{{V: 1}}, Median: num(1), Low: num(0.5), High: num(2)}}},
	}
}

// TestComparisonsDraw draws all of them, twice with the same bytes.
func TestComparisonsDraw(t *testing.T) {
	for name, p := range odd() {
		t.Run(name, func(t *testing.T) {
			s := p.SVG()
			wellFormed(t, s)
			if s != p.SVG() {
				t.Error("drawn again, the SVG is another")
			}
			if !strings.Contains(s, "<desc>") {
				t.Error("the picture has no description")
			}
			b, err := p.PNG()
			if err != nil {
				t.Fatal(err)
			}
			again, err := p.PNG()
			if err != nil || !bytes.Equal(b, again) {
				t.Errorf("drawn again, the PNG is another: %v", err)
			}
			if _, err := png.Decode(bytes.NewReader(b)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLooks: what a page draws, a PNG draws too. Fails if a class has no look,
// for instance "chfaster".
func TestLooks(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range odd() {
		for _, m := range regexp.MustCompile(`class="([^"]*)"`).FindAllStringSubmatch(p.SVG(), -1) {
			for class := range strings.FieldsSeq(m[1]) {
				seen[class] = true
			}
		}
	}
	delete(seen, "chart")
	if len(seen) < 40 {
		t.Fatalf("only %d classes seen", len(seen))
	}
	for class := range seen {
		if l, ok := looks[class]; !ok || l.fill.A == 0 && l.stroke.A == 0 {
			t.Errorf("the class %q has no look", class)
		}
	}
}

// TestForestOrder: the smallest ratio is on top, what has none at the bottom.
// Fails if sorted compares the wrong way round.
func TestForestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g ForestGroup
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			e := Effect{}
			if rapid.Bool().Draw(t, "has") {
				e.Ratio = num(rapid.Float64Range(-1, 100).Draw(t, "ratio"))
			}
			g.Rows = append(g.Rows, e)
		}
		rows := g.sorted()
		if len(rows) != len(g.Rows) {
			t.Fatalf("%d of %d rows", len(rows), len(g.Rows))
		}
		for i := 1; i < len(rows); i++ {
			a, b := rows[i-1], rows[i]
			if b.drawn() && (!a.drawn() || *a.Ratio > *b.Ratio) {
				t.Fatalf("row %d stands in the wrong place", i)
			}
		}
	})
}

// TestForestScale: every ratio lies on the axis and so does 1; one endless
// interval does not press the others together. Fails if ciReach is 1e6.
func TestForestScale(t *testing.T) {
	f := &Forest{Groups: []ForestGroup{{Rows: []Effect{
		{Ratio: num(0.9), Low: num(0.8), High: num(1.1)}, {Ratio: num(1.2), Low: num(1e-9), High: num(1e9)},
	}}}}
	sc := f.scale()
	for _, v := range []float64{0.9, 1, 1.2} {
		if v < sc.min || v > sc.max {
			t.Errorf("%v is not on the axis from %v to %v", v, sc.min, sc.max)
		}
	}
	if sc.at(1.2)-sc.at(0.9) < 0.08 {
		t.Errorf("the ratios are %v apart", sc.at(1.2)-sc.at(0.9))
	}
	if n := len(strings.Fields(labels(sc))); n < 3 {
		t.Errorf("%d labels", n)
	}
}

// luminance and contrast are those of WCAG 2.
func luminance(c color.NRGBA) float64 {
	f := func(v uint8) float64 {
		x := float64(v) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*f(c.R) + 0.7152*f(c.G) + 0.0722*f(c.B)
}

func contrast(a, b color.NRGBA) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestHeatIsLegible: text on every colour has a contrast of 4.5, and colours
// darken from step to step. Fails if heatDark is 4 or 6.
func TestHeatIsLegible(t *testing.T) {
	for i, c := range heatInks {
		text := looks["hl"].fill
		if i >= heatDark {
			text = looks["hd"].fill
		}
		if got := contrast(c, text); got < 4.5 {
			t.Errorf("step %d: contrast %.2f", i, got)
		}
		if i > 0 && luminance(c) >= luminance(heatInks[i-1]) {
			t.Errorf("step %d is not darker than the one before", i)
		}
	}
}

// TestSteps: equal values share a colour, the extremes get the ends.
func TestSteps(t *testing.T) {
	for _, c := range []struct {
		v, low, high float64
		log          bool
		want         int
	}{
		{1, 1, 1, false, 4}, {1, 1, 9, false, 0}, {9, 1, 9, false, 8}, {5, 1, 9, false, 4}, {10, 1, 100, true, 4}, {0, 0, 0, false, 4}, {1, 1, 1e9, true, 0},
	} {
		if got := step(c.v, c.low, c.high, c.log); got != c.want {
			t.Errorf("%+v: step %d", c, got)
		}
	}
}

// TestInksAreLegible: what is written in a colour can be read on paper.
func TestInksAreLegible(t *testing.T) {
	for _, class := range slices.Sorted(slices.Values([]string{"lab", "dim", "tick", "small", "good", "bad", "faulttext", "marktext", "slowertext", "fastertext"})) {
		if got := contrast(looks[class].fill, paperInk); got < 4.5 {
			t.Errorf("%s: contrast %.2f", class, got)
		}
	}
}
