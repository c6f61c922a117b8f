package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// State is what a task does in a span of a Timeline, the least advanced first.
type State int

// States of tasks.
const (
	Deploying State = iota
	Initializing
	Draining // RUNNING, with restored data that it has not processed yet
	Running
	states
)

var stateNames = [states]string{"deploying", "initializing", "running, restored data not yet drained", "running"}

// String is the state in words.
func (s State) String() string { return stateNames[s] }

// Timeline shows one trial: what its tasks did, its checkpoints and its
// throughput. Times are seconds, with the first fault at 0.
type Timeline struct {
	Title       string
	From, To    float64 // what is shown
	Left        float64 // room for the names, at least; charts below each other share it
	Lanes       []Lane
	Marks       []Mark
	Checkpoints []Checkpoint
	Rates       []Rate
	MaxRate     float64 // top of the throughput lane, higher rates are cut; 0: RateTop
	Batch       bool    // a job that has no checkpoints
}

// Lane is one vertex; a strip is one subtask, or several side by side that are
// shown as the least advanced of them.
type Lane struct {
	Name   string
	Strips [][]Span
}

// Span is a stretch of time in one state.
type Span struct {
	From, To float64
	State    State
}

// Checkpoint is one checkpoint from its trigger to its end.
type Checkpoint struct {
	ID       int64
	From, To float64
	Outcome  CheckpointOutcome
	Note     string // size, or the reason of the failure
}

// CheckpointOutcome is how a checkpoint ended.
type CheckpointOutcome int

// Outcomes of checkpoints.
const (
	Pending CheckpointOutcome = iota // not within the trial
	Completed
	Failed
)

func (o CheckpointOutcome) String() string { return [...]string{"not ended", "complete", "failed"}[o] }

// Rate is a point of the throughput line.
type Rate struct{ T, PerSecond float64 }

// Sizes of a timeline, in px.
const (
	laneGap        = 7.0
	checkpointLane = 22.0
	rateLane       = 46.0
)

// layout is where the parts of a timeline lie, in px from its upper left.
type layout struct {
	left, width float64 // of the time axis
	marks       []placed
	rows        int // of mark texts
	lanes       []float64
	strip       []float64 // height of a strip, by lane
	checkpoints float64
	rates       float64
	bottom      float64
	scale       scale
}

// stripHeight makes a lane of few subtasks well visible and one of many no
// higher than needed.
func stripHeight(n int) float64 {
	return math.Round(min(max(60/float64(max(n, 1)), 3), 12))
}

// NameWidth is the room that the names of the lanes take.
func (t *Timeline) NameWidth() float64 {
	var labels []string
	for _, l := range t.Lanes {
		labels = append(labels, l.Name)
	}
	if len(t.Rates) > 0 {
		labels = append(labels, t.rateRange())
	}
	return max(labelWidth(labels), 126)
}

func (t *Timeline) layout() layout {
	l := layout{left: max(t.NameWidth(), t.Left), scale: seconds(t.From, t.To)}
	l.width = chartWidth - l.left - 24
	l.place(t.Marks)
	y := float64(l.rows)*markRow + 6
	for _, lane := range t.Lanes {
		h := stripHeight(len(lane.Strips))
		l.lanes, l.strip = append(l.lanes, y), append(l.strip, h)
		y += max(h*float64(len(lane.Strips)), 12) + laneGap
	}
	l.checkpoints = y
	if !t.Batch {
		y += checkpointLane + laneGap
	}
	if len(t.Rates) > 0 {
		l.rates = y + 4
		y += rateLane + laneGap
	}
	l.bottom = y
	return l
}

// seconds is a linear scale that need not begin at 0.
func seconds(from, to float64) scale {
	if !(to > from) || !finite(from) || !finite(to) {
		from, to = 0, 1
	}
	return linear(from, to)
}

func (l *layout) x(t float64) float64 { return l.left + l.scale.at(t)*l.width }

// RateTop is a top of the throughput lane that shows the line well: the highest
// rate, unless it is a lone peak far above nearly all others. Sources that are
// starved of CPU report late, and then all at once.
func (t *Timeline) RateTop() float64 {
	var xs []float64
	for _, r := range t.Rates {
		if finite(r.PerSecond) && r.PerSecond > 0 {
			xs = append(xs, r.PerSecond)
		}
	}
	if len(xs) == 0 {
		return 1
	}
	slices.Sort(xs)
	return min(xs[len(xs)-1], 3*xs[(len(xs)-1)*95/100])
}

func (t *Timeline) maxRate() float64 {
	if t.MaxRate > 0 {
		return t.MaxRate
	}
	return t.RateTop()
}

// rateRange names the throughput lane's range, and the peak if it is cut.
func (t *Timeline) rateRange() string {
	peak := 0.0
	for _, r := range t.Rates {
		peak = max(peak, r.PerSecond)
	}
	text := "0 to " + rateLabel(t.maxRate())
	if peak > 1.05*t.maxRate() {
		text += ", peak " + rateLabel(peak)
	}
	return text
}

// rateLabel writes a rate in few characters.
func rateLabel(perSecond float64) string {
	switch {
	case perSecond >= 1e6:
		return fmt.Sprintf("%.1f M/s", perSecond/1e6)
	case perSecond >= 1e4:
		return fmt.Sprintf("%.0f k/s", perSecond/1e3)
	case perSecond >= 1e3:
		return fmt.Sprintf("%.1f k/s", perSecond/1e3)
	}
	return fmt.Sprintf("%.0f/s", math.Ceil(perSecond))
}

// axisTitle says what the time counts from.
func (t *Timeline) axisTitle() string {
	faults := 0
	for _, m := range t.Marks {
		if m.Fault {
			faults++
		}
	}
	switch faults {
	case 0:
		return "seconds from the start of the trial"
	case 1:
		return "seconds from the fault"
	}
	return "seconds from the first fault"
}

func (t *Timeline) describe() string {
	var parts []string
	for _, m := range t.Marks {
		if m.Fault {
			parts = append(parts, fmt.Sprintf("%s at %s", m.Text, Quantity(m.T, "s")))
		} else {
			parts = append(parts, m.Text)
		}
	}
	done, failed := 0, 0
	for _, c := range t.Checkpoints {
		switch c.Outcome {
		case Completed:
			done++
		case Failed:
			failed++
		}
	}
	if !t.Batch {
		parts = append(parts, fmt.Sprintf("%d checkpoints complete, %d failed", done, failed))
	}
	return strings.Join(parts, "; ")
}

// SVG draws the timeline for the page.
func (t *Timeline) SVG() string {
	l := t.layout()
	var s svg
	s.begin(chartWidth, l.bottom+axisHeight, t.Title, t.describe())
	t.draw(&s, l)
	return s.end()
}

// PNG draws the timeline as a picture.
func (t *Timeline) PNG() ([]byte, error) {
	l := t.layout()
	signs := stateSigns(sign{"ckcross", true, "failed"})
	if t.Batch {
		signs = nil
		for _, state := range []State{Deploying, Initializing, Running} {
			signs = append(signs, sign{stateClass(state), false, state.String()})
		}
	}
	return onPaper(t.Title, signs, l.bottom+axisHeight, func(s surface) { t.draw(s, l) })
}

// stateSigns is the legend of states and checkpoints; the page has it in its
// own words.
func stateSigns(more ...sign) []sign {
	var out []sign
	for state := range states {
		out = append(out, sign{stateClass(state), false, state.String()})
	}
	return append(append(out, sign{"ckdone", true, "checkpoint complete"}), more...)
}

func stateClass(s State) string { return fmt.Sprintf("t%d", s) }

func (t *Timeline) draw(s surface, l layout) {
	top := float64(l.rows)*markRow + 2
	axis(s, l.scale, l.left, l.width, top, l.bottom, t.axisTitle())
	for i, lane := range t.Lanes {
		t.drawLane(s, l, i, lane)
	}
	if !t.Batch {
		t.drawCheckpoints(s, l)
	}
	t.drawRates(s, l)
	l.drawMarks(s)
}

func (t *Timeline) drawLane(s surface, l layout, i int, lane Lane) {
	h := l.strip[i]
	height := h * float64(len(lane.Strips))
	s.label("lab", "end", l.left-labelMargin, l.lanes[i]+max(height, 12)/2+4, labelMax, lane.Name)
	if height > 0 {
		s.rect("bed", l.left, l.lanes[i], l.width, height, "")
	}
	for state := range states {
		var boxes [][4]float64
		for j, strip := range lane.Strips {
			y := l.lanes[i] + float64(j)*h
			for _, span := range strip {
				if span.State != state {
					continue
				}
				x1, x2 := l.x(span.From), l.x(span.To)
				if x2-x1 >= 0.1 {
					boxes = append(boxes, [4]float64{x1, y, x2 - x1, gapped(h)})
				}
			}
		}
		if len(boxes) > 0 {
			s.boxes(stateClass(state), boxes, lane.Name+": "+state.String())
		}
	}
}

// gapped leaves a hair between strips that are high enough for it.
func gapped(h float64) float64 {
	if h >= 5 {
		return h - 1
	}
	return h
}

func (t *Timeline) drawCheckpoints(s surface, l layout) {
	y := l.checkpoints
	s.text("lab", "end", l.left-labelMargin, y+checkpointLane/2+4, "checkpoints")
	s.rect("bed", l.left, y, l.width, checkpointLane, "")
	for i := range t.Checkpoints {
		c := &t.Checkpoints[i]
		if c.To < l.scale.min || c.From > l.scale.max {
			continue
		}
		x1, x2 := l.x(c.From), l.x(c.To)
		class := [...]string{"ckpending", "ckok", "ckfail"}[c.Outcome]
		s.rect(class, x1, y+7, max(x2-x1, 1), checkpointLane-14, c.describe())
		if c.To <= l.scale.max {
			c.end(s, x2, y+checkpointLane/2, 5)
		}
	}
}

// describe tells of a checkpoint in words.
func (c *Checkpoint) describe() string {
	note := fmt.Sprintf("checkpoint %d: triggered at %s, %s", c.ID, at(c.From), c.Outcome)
	if c.Outcome != Pending {
		note += " at " + at(c.To)
	}
	if c.Note != "" {
		note += ", " + c.Note
	}
	return note
}

// end draws how a checkpoint ended: a disc, a cross, nothing.
func (c *Checkpoint) end(s surface, x, y, r float64) {
	switch c.Outcome {
	case Completed:
		s.circle("ckdone", x, y, r, c.describe())
	case Failed:
		r *= 0.8
		s.poly("ckcross", [][2]float64{{x - r, y - r}, {x + r, y + r}}, false, c.describe())
		s.poly("ckcross", [][2]float64{{x - r, y + r}, {x + r, y - r}}, false, c.describe())
	}
}

func at(t float64) string {
	if t < 0 {
		return "−" + Quantity(-t, "s")
	}
	return Quantity(t, "s")
}

func (t *Timeline) drawRates(s surface, l layout) {
	if len(t.Rates) == 0 {
		return
	}
	top := t.maxRate()
	y0 := l.rates + rateLane - 4
	s.text("lab", "end", l.left-labelMargin, l.rates+rateLane/2-1, "source records")
	s.text("dim small", "end", l.left-labelMargin, l.rates+rateLane/2+13, t.rateRange())
	s.line("grid", l.left, l.rates, l.left+l.width, l.rates)
	s.line("axis", l.left, y0, l.left+l.width, y0)
	var line [][2]float64
	for _, r := range t.Rates {
		if r.T >= l.scale.min && r.T <= l.scale.max && finite(r.PerSecond) {
			line = append(line, [2]float64{l.x(r.T), y0 - min(max(r.PerSecond/top, 0), 1)*(rateLane-4)})
		}
	}
	if len(line) > 1 {
		s.poly("rate", line, false, "records that left the sources per second")
	}
}
