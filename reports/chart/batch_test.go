package chart

import (
	"math"
	"regexp"
	"strconv"
	"testing"
)

var rects = regexp.MustCompile(`<rect class="(s\d|range)" x="([\d.]+)" y="([\d.]+)" width="([\d.]+)"`)

// drawn are x and width of the rectangles of a class, in order.
func drawn(t *testing.T, svg, class string) (out [][2]float64) {
	t.Helper()
	for _, m := range rects.FindAllStringSubmatch(svg, -1) {
		if m[1][:1] != class[:1] {
			continue
		}
		x, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		w, err := strconv.ParseFloat(m[4], 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, [2]float64{x, w})
	}
	return out
}

// Parts of a bar follow one another, as long as they are large.
//
// Fails if a part begins where the one before it began.
func TestStackedPartsFollow(t *testing.T) {
	b := &Stacked{Unit: "s", Series: []string{"a", "b", "c"}, Rows: []Sum{{Label: "x", Parts: []*float64{num(1), num(2), num(0.5)}}}}
	got := drawn(t, b.SVG(), "s")
	if len(got) != 3 {
		t.Fatalf("%d parts: %v", len(got), got)
	}
	for i := 1; i < len(got); i++ {
		if gap := got[i][0] - got[i-1][0] - got[i-1][1]; math.Abs(gap) > 0.2 {
			t.Errorf("a gap of %v px before part %d: %v", gap, i, got)
		}
	}
	if r := got[1][1] / got[0][1]; math.Abs(r-2) > 0.02 {
		t.Errorf("the second part is %v times the first", r)
	}
}

// An outage is as wide as it is long, and faults that fall together share a mark.
func TestWorkOutage(t *testing.T) {
	w := &Work{To: 10, Rows: []Progress{{Label: "x", Steps: []WorkStep{{1, 0.5}, {10, 1}}, Outages: []Outage{{2, 4}, {5, 6}},
		Faults: []Mark{{T: 2, Text: "lose"}, {T: 2.001, Text: "kill"}, {T: 5, Text: "again"}}}}}
	got := drawn(t, w.SVG(), "range")
	if len(got) != 2 || math.Abs(got[0][1]/got[1][1]-2) > 0.02 {
		t.Errorf("outages %v", got)
	}
	if marks := w.Rows[0].strikes(seconds(0, 10), func(t float64) float64 { return 90 * t }); len(marks) != 2 || marks[0].Text != "lose, kill" || marks[1].Text != "again" {
		t.Errorf("marks %+v", marks)
	}
	if s := w.Rows[0].at(2); s != 0.5 {
		t.Errorf("at the fault %v was done", s)
	}
}

var whiskers = regexp.MustCompile(`<line class="whisker" x1="([\d.]+)" y1="([\d.]+)" x2="([\d.]+)" y2="([\d.]+)"`)

// An interval is drawn where its bar would end if it were that long.
//
// Fails if an end is not on the scale of the bars, or a bar without an interval
// gets one.
func TestBarsHaveIntervals(t *testing.T) {
	b := &Bars{Unit: "s", Series: []string{"a", "b"}, Groups: []Group{{Label: "x", Values: []*float64{num(2), num(4)}, Low: []*float64{num(1), nil}, High: []*float64{num(4), nil}}}}
	svg := b.SVG()
	bars, lines := drawn(t, svg, "s"), whiskers.FindAllStringSubmatch(svg, -1)
	if len(bars) != 2 || len(lines) != 3 {
		t.Fatalf("%d bars, %d lines of intervals", len(bars), len(lines))
	}
	at := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if from, to := at(lines[0][1]), at(lines[0][3]); math.Abs(to-bars[1][0]-bars[1][1]) > 0.2 || math.Abs(from-bars[0][0]-bars[0][1]/2) > 0.2 {
		t.Errorf("from %v to %v beside bars %v", from, to, bars)
	}
}

// Ratios that hardly differ from 1 do not fill the axis.
//
// Fails if the axis is as narrow as the ratios.
func TestForestIsNotNarrow(t *testing.T) {
	f := &Forest{Groups: []ForestGroup{{Rows: []Effect{{Label: "x", Ratio: num(1.0003)}}}}}
	if s := f.scale(); s.min > 0.991 || s.max < 1.01 {
		t.Errorf("from %v to %v", s.min, s.max)
	}
}
