package chart

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func labels(s scale) string {
	var out []string
	for _, t := range s.ticks {
		if t.label != "" {
			out = append(out, t.label)
		}
	}
	return strings.Join(out, " ")
}

func TestScales(t *testing.T) {
	for _, c := range []struct {
		values []float64
		log    bool
		labels string
	}{
		{nil, false, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{[]float64{math.NaN(), math.Inf(1)}, false, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{[]float64{0, 0}, false, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{[]float64{2.5}, false, "0.0 0.5 1.0 1.5 2.0 2.5"},
		{[]float64{1.3, 0.9}, false, "0.00 0.25 0.50 0.75 1.00 1.25"},
		{[]float64{30, 18}, false, "0 10 20 30"},
		{[]float64{1200, 5000}, false, "0 1,000 2,000 3,000 4,000 5,000"},
		{[]float64{0, 5000}, false, "0 1,000 2,000 3,000 4,000 5,000"}, // a zero is on no logarithmic axis
		{[]float64{0.03, 2.5}, true, "0.05 0.1 0.2 0.5 1 2"},
		{[]float64{1e-5, 1}, true, "0.00001 0.0001 0.001 0.01 0.1 1"},
		{[]float64{-1, 3}, false, "-1 0 1 2 3"},
	} {
		s := newScale(c.values)
		if s.log != c.log || labels(s) != c.labels {
			t.Errorf("%v: logarithmic %v, %q; want %v, %q", c.values, s.log, labels(s), c.log, c.labels)
		}
	}
}

// TestScaleHoldsItsValues: whatever is shown lies on the axis, in order, and
// the axis says at least two numbers.
func TestScaleHoldsItsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e9), 1, 20).Draw(t, "values")
		s := newScale(values)
		if n := len(strings.Fields(labels(s))); n < 2 || n > 40 {
			t.Fatalf("%d labels for %v: %s", n, values, labels(s))
		}
		for _, v := range values {
			if v < s.min || v > s.max {
				t.Fatalf("%v is outside %v to %v", v, s.min, s.max)
			}
			for _, w := range values {
				if v < w && s.at(v) > s.at(w) {
					t.Fatalf("%v lies above %v", v, w)
				}
			}
		}
		for _, tick := range s.ticks {
			if p := s.at(tick.value); !(p >= 0 && p <= 1) {
				t.Fatalf("the tick %v lies at %v", tick.value, p)
			}
		}
	})
}

func TestJitterSpreads(t *testing.T) {
	if jitter(0, 1) != 0 {
		t.Error("a lone point is off the middle")
	}
	seen := map[float64]bool{}
	for i := range 64 {
		j := jitter(i, 64)
		if j < -0.5 || j > 0.5 || seen[j] {
			t.Errorf("point %d at %v", i, j)
		}
		seen[j] = true
	}
}

func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0, "s", "0 s"}, {0.00002, "s", "<0.001 s"}, {0.0341, "s", "0.034 s"}, {1.8249, "s", "1.82 s"}, {12.34, "s", "12.3 s"}, {1234.5, "s", "1,234 s"},
		{0, "B", "0 B"}, {1023, "B", "1,023 B"}, {1536, "B", "1.50 KiB"}, {64 << 20, "B", "64.0 MiB"}, {200 << 20, "B", "200 MiB"}, {1 << 50, "B", "1,024 TiB"},
		{160980, "records", "160,980 records"}, {162345.6, "records/s", "162,346 records/s"},
		{1.1557, "ratio", "1.16"}, {0.004, "ratio", "0.004"}, {12.3, "ratio", "12.3"}, {math.NaN(), "s", "– s"}, {3, "1", "3.00"},
	} {
		if got := Quantity(c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"short", "short"},
		{"no option, buffers-per-channel 2", "no option,|buffers-per-channel 2"},
		{"R, first-long-name 1, another-long-name 2", "R, first-long-name 1,|another-long-name 2"},
		{"averyveryverylongnamewithoutanyspaceinit", "averyveryver…anyspaceinit"},
		{"R+D, a-name-that-is-much-too-long-for-a-line 3", "R+D,|a-name-that-…for-a-line 3"},
	} {
		got := strings.Join(wrap(c.text, 25*charWidth), "|")
		for _, line := range strings.Split(got, "|") {
			if textWidth(line) > 25*charWidth {
				t.Errorf("%q is too wide", line)
			}
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.text, got, c.want)
		}
	}
}

func wellFormed(t *testing.T, s string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("%v in %.200s", err, s)
		}
	}
	for _, bad := range []string{"NaN", "Inf"} {
		if strings.Contains(s, bad) {
			t.Errorf("the picture says %s", bad)
		}
	}
}

type picture interface {
	SVG() string
	PNG() ([]byte, error)
}

// TestOddCharts draws what has nothing or too much in it.
func TestOddCharts(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	long := strings.Repeat("long name ", 20)
	for name, p := range map[string]picture{
		"no rows":       &Points{Title: "t", Unit: "s"},
		"empty row":     &Points{Title: "t", Unit: "s", Rows: []Row{{Label: "a", Planned: 3, Failed: 3}}},
		"one value":     &Points{Title: "t", Unit: "B", Rows: []Row{{Label: "a", Values: []Value{{V: 5}}, Median: v(5)}}},
		"zeros":         &Points{Title: "t", Unit: "s", Rows: []Row{{Label: "a", Values: []Value{{V: 0}, {V: 0}}, Median: v(0), Low: v(0), High: v(0)}}},
		"no numbers":    &Points{Title: "t", Unit: "s", Rows: []Row{{Label: "a", Values: []Value{{V: math.NaN()}, {V: math.Inf(1)}, {V: 2}}, Median: v(2)}}},
		"decades":       &Points{Title: "t", Unit: "s", Rows: []Row{{Label: "a", Values: []Value{{V: 1e-6}, {V: 1e6}}, Median: v(1)}}},
		"zero, decades": &Points{Title: "t", Unit: "s", Rows: []Row{{Label: "a", Values: []Value{{V: 0}, {V: 1e6}}, Median: v(1)}}},
		"hostile":       &Points{Title: `<&">`, Unit: "s", Rows: []Row{{Label: `<script>"&'</script>` + long, Values: []Value{{V: 1, Note: "<b>&"}}, Median: v(1)}}},
		"CJK":           &Points{Title: "測定", Unit: "s", Rows: []Row{{Label: "測定", Values: []Value{{V: 1}}, Median: v(1)}}},
		"no bars":       &Bars{Title: "t", Unit: "s"},
		"bars of nil":   &Bars{Title: "t", Unit: "s", Series: []string{"a", "b"}, Groups: []Group{{Label: "x", Values: []*float64{nil, nil}}}},
		"bars of 0":     &Bars{Title: "t", Unit: "s", Series: []string{"a"}, Groups: []Group{{Label: "x", Values: []*float64{v(0)}}}},
		"no timeline":   &Timeline{},
		"point in time": &Timeline{From: 1, To: 1, Marks: []Mark{{T: 1, Text: "now"}}},
		"no lanes":      &Timeline{From: -1, To: 5, Marks: []Mark{{T: 0, Text: "fault", Fault: true}}},
		"outside": &Timeline{From: 0, To: 1, Lanes: []Lane{{Name: long, Strips: [][]Span{{{From: -5, To: 50, State: Running}}, nil}}},
			Marks: []Mark{{T: 7, Text: "late"}}, Checkpoints: []Checkpoint{{ID: 1, From: -3, To: -2}, {ID: 2, From: 0.5, To: 9}, {ID: 3, From: 4, To: 5}},
			Rates: []Rate{{T: 0.1, PerSecond: math.NaN()}, {T: 0.5, PerSecond: 0}, {T: 0.6, PerSecond: math.Inf(1)}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := p.SVG()
			wellFormed(t, s)
			if s != p.SVG() {
				t.Error("drawn again, the SVG is another")
			}
			b, err := p.PNG()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := png.Decode(bytes.NewReader(b)); err != nil {
				t.Error(err)
			}
			again, err := p.PNG()
			if err != nil || !bytes.Equal(b, again) {
				t.Errorf("drawn again, the PNG is another: %v", err)
			}
		})
	}
}

// TestMarksDoNotOverlap: of the texts above a timeline, none covers another or has
// the line of another mark running through it.
//
// Fails if a mark takes the first row in which its text is free (either condition
// on lines left out of fits).
func TestMarksDoNotOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var marks []Mark
		for i := range rapid.IntRange(0, 15).Draw(t, "n") {
			marks = append(marks, Mark{T: rapid.Float64Range(0, 10).Draw(t, "t"), Text: strings.Repeat("x", rapid.IntRange(1, 30).Draw(t, "len")), Fault: i%3 == 0})
		}
		tl := Timeline{From: 0, To: 10, Marks: marks}
		l := tl.layout()
		if len(l.marks) != len(marks) {
			t.Fatalf("%d of %d marks are drawn", len(l.marks), len(marks))
		}
		if l.rows > markRows {
			t.Fatalf("%d rows of text", l.rows)
		}
		for i, a := range l.marks {
			if x := a.x; x < l.left || x > l.left+l.width {
				t.Fatalf("a mark at %v, outside", x)
			}
			for j, b := range l.marks {
				if from, to := reach(b); !b.mute && i != j && a.row <= b.row && a.x > from && a.x < to {
					t.Fatalf("the line of %+v runs through the text of %+v", a, b)
				}
				if j >= i || a.mute || b.mute || a.row != b.row {
					continue
				}
				a1, a2 := reach(a)
				b1, b2 := reach(b)
				if a1 < b2 && b1 < a2 {
					t.Fatalf("%+v covers %+v", a, b)
				}
			}
		}
	})
}

func reach(p placed) (from, to float64) {
	if p.after {
		return p.x + 3, p.x + textWidth(p.Text)
	}
	return p.x - textWidth(p.Text), p.x - 3
}

// Three faults with what came after each, as a batch job has them, keep their words.
//
// Fails if only the first row is tried, or if place settles once.
func TestMarksOfThreeFaults(t *testing.T) {
	both := func(at string) string { return "a task runs, parity " + at }
	tl := Timeline{From: -0.36, To: 6.7, Batch: true, Marks: []Mark{
		{0, "first", true}, {0.537, both("0.537 s"), false}, {1.4, "second", true}, {1.74, both("0.341 s"), false},
		{2.2, "third", true}, {2.55, both("0.349 s"), false},
	}}
	for _, m := range tl.layout().marks {
		if m.mute {
			t.Errorf("%q is not written", m.Text)
		}
	}
	for i := range 12 { // more than there is room for: names of faults count most
		tl.Marks = append(tl.Marks, Mark{0.3 * float64(i), "a moment of no weight", false})
	}
	for _, m := range tl.layout().marks {
		if m.Fault && m.mute {
			t.Errorf("the name of the fault %q gives way to moments", m.Text)
		}
	}
}

func TestRateTop(t *testing.T) {
	flat := &Timeline{}
	for i := range 40 {
		flat.Rates = append(flat.Rates, Rate{float64(i), 100 + float64(i)})
	}
	if top := flat.RateTop(); top != 139 {
		t.Error(top)
	}
	flat.Rates[7].PerSecond = 1e6
	if top := flat.RateTop(); top > 500 {
		t.Errorf("a lone peak of 1e6 makes a top of %v", top)
	}
	if got := flat.rateRange(); !strings.Contains(got, "peak 1.0 M/s") {
		t.Errorf("the peak that is cut is not told: %q", got)
	}
}

// TestManySubtasks keeps the page small: strips of a state are one element.
func TestManySubtasks(t *testing.T) {
	lane := Lane{Name: "v"}
	for i := range 24 {
		lane.Strips = append(lane.Strips, []Span{{0, float64(i), Initializing}, {float64(i), 30, Running}})
	}
	tl := &Timeline{From: 0, To: 30, Lanes: []Lane{lane, lane, lane}}
	if s := tl.SVG(); strings.Count(s, "<") > 120 || len(s) > 16<<10 {
		t.Errorf("%d elements, %d bytes", strings.Count(s, "<"), len(s))
	}
}

func ExampleQuantity() {
	fmt.Println(Quantity(0.0341, "s"), Quantity(67108864, "B"), Quantity(162345.6, "records/s"))
	// Output: 0.034 s 64.0 MiB 162,346 records/s
}
