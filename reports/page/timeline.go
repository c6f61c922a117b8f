package page

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
)

// maxStrips is how many strips a vertex has at most in a timeline. More
// subtasks share strips.
const maxStrips = 24

type task struct {
	vertex  string
	subtask int
}

// span is a stretch of one attempt of a task in one state, in microseconds.
type span struct {
	from, to int64
	state    chart.State
}

// tracks follows the tasks of a trial through its events.
type tracks struct {
	vertices []string // in the order of first sight
	spans    map[task][]span
	open     map[task]openSpan
	drained  map[attempt]int64
	last     int64
	faults   []int64
	waves    bool // tasks of a batch job come and go: all that there were count
}

type attempt struct {
	task
	attempt int
}

type openSpan struct {
	attempt int
	from    int64
	state   chart.State
}

// follow reads the spans of all tasks.
func follow(events []result.Event) *tracks {
	k := &tracks{spans: map[task][]span{}, open: map[task]openSpan{}, drained: map[attempt]int64{}}
	for _, e := range events {
		if e.Kind == "restore-drained" {
			a := attempt{task{e.Vertex, e.Subtask}, e.Attempt}
			k.drained[a] = max(k.drained[a], e.TUs)
		}
		k.last = max(k.last, e.TUs)
	}
	for _, e := range events {
		switch e.Kind {
		case "fault":
			k.faults = append(k.faults, e.TUs)
		case "task-state":
			k.task(e)
		}
	}
	for t := range k.open {
		k.shut(t, k.last)
	}
	return k
}

func (k *tracks) task(e result.Event) {
	t := task{e.Vertex, e.Subtask}
	if !slices.Contains(k.vertices, e.Vertex) {
		k.vertices = append(k.vertices, e.Vertex)
	}
	if o, ok := k.open[t]; ok && o.attempt != e.Attempt {
		if o.attempt > e.Attempt {
			return // late news of an attempt that was replaced
		}
		k.shut(t, k.died(o.from, e.TUs))
	}
	switch e.State {
	case "DEPLOYING":
		k.enter(t, e, chart.Deploying)
	case "INITIALIZING":
		k.enter(t, e, chart.Initializing)
	case "RUNNING":
		until, restored := k.drained[attempt{t, e.Attempt}]
		if !restored || until <= e.TUs {
			k.enter(t, e, chart.Running)
			return
		}
		k.enter(t, e, chart.Draining)
	case "FINISHED", "CANCELING", "CANCELED", "FAILED":
		k.shut(t, e.TUs)
	}
}

func (k *tracks) enter(t task, e result.Event, s chart.State) {
	if o, ok := k.open[t]; ok && o.state == s {
		return
	}
	k.shut(t, e.TUs)
	k.open[t] = openSpan{e.Attempt, e.TUs, s}
}

// shut ends what a task is doing.
func (k *tracks) shut(t task, at int64) {
	o, ok := k.open[t]
	if !ok {
		return
	}
	delete(k.open, t)
	if o.state == chart.Draining {
		until := min(k.drained[attempt{t, o.attempt}], at)
		k.add(t, span{o.from, until, chart.Draining})
		k.add(t, span{until, at, chart.Running})
		return
	}
	k.add(t, span{o.from, at, o.state})
}

func (k *tracks) add(t task, s span) {
	if s.to > s.from {
		k.spans[t] = append(k.spans[t], s)
	}
}

// died is when an attempt ended that nobody saw ending: a worker that is killed
// sends nothing. It is the last fault before the next attempt.
func (k *tracks) died(from, next int64) int64 {
	at := next
	for _, f := range k.faults {
		if f > from && f <= next {
			at = f
		}
	}
	return at
}

// parallelism tells how many tasks were up before each fault and at the end.
func (k *tracks) parallelism(tasks []task, until int64) string {
	if k.waves {
		return fmt.Sprint(len(tasks))
	}
	var counts []string
	for _, at := range append(slices.Clone(k.faults), until) {
		n := 0
		for _, t := range tasks {
			for _, s := range k.spans[t] {
				if s.from < at && at <= s.to {
					n++
				}
			}
		}
		if c := fmt.Sprint(n); n > 0 && (len(counts) == 0 || counts[len(counts)-1] != c) {
			counts = append(counts, c)
		}
	}
	if len(counts) == 0 || len(counts) > 6 {
		return fmt.Sprint(len(tasks))
	}
	return strings.Join(counts, " → ")
}

// lanes are the vertices with their strips, in seconds from t0. until is the
// last moment of interest.
func (k *tracks) lanes(t0, until int64) []chart.Lane {
	var out []chart.Lane
	for _, v := range k.vertices {
		var tasks []task
		for t := range k.spans {
			if t.vertex == v {
				tasks = append(tasks, t)
			}
		}
		if len(tasks) == 0 {
			continue
		}
		slices.SortFunc(tasks, func(a, b task) int { return a.subtask - b.subtask })
		lane := chart.Lane{Name: v + " × " + k.parallelism(tasks, until)}
		per := (len(tasks) + maxStrips - 1) / maxStrips
		for group := range slices.Chunk(tasks, per) {
			var all [][]span
			for _, t := range group {
				all = append(all, k.spans[t])
			}
			var strip []chart.Span
			for _, s := range leastAdvanced(all) {
				strip = append(strip, chart.Span{From: float64(s.from-t0) / 1e6, To: float64(s.to-t0) / 1e6, State: s.state})
			}
			lane.Strips = append(lane.Strips, strip)
		}
		out = append(out, lane)
	}
	return out
}

// leastAdvanced merges tasks into one strip that is at every moment in the
// least advanced of their states. A task counts from its first span to its
// last; in between, one that is down makes the strip empty.
func leastAdvanced(tasks [][]span) []span {
	switch len(tasks) {
	case 0:
		return nil
	case 1:
		return tasks[0]
	}
	var cuts []int64
	for _, spans := range tasks {
		for _, s := range spans {
			cuts = append(cuts, s.from, s.to)
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	next := make([]int, len(tasks)) // first span of each task that has not ended
	var out []span
	for i := 0; i+1 < len(cuts); i++ {
		from, to := cuts[i], cuts[i+1]
		state, up, down := chart.Running, false, false
		for j, spans := range tasks {
			for next[j] < len(spans) && spans[next[j]].to <= from {
				next[j]++
			}
			switch n := next[j]; {
			case n == len(spans):
			case spans[n].from <= from:
				state, up = min(state, spans[n].state), true
			case n > 0:
				down = true
			}
		}
		if !up || down {
			continue
		}
		if n := len(out); n > 0 && out[n-1].to == from && out[n-1].state == state {
			out[n-1].to = to
			continue
		}
		out = append(out, span{from, to, state})
	}
	return out
}

// checkpoints lists the checkpoints of a trial.
func checkpoints(events []result.Event, t0 int64) []chart.Checkpoint {
	var out []chart.Checkpoint
	at := map[int64]int{}
	last := int64(0)
	for _, e := range events {
		last = max(last, e.TUs)
		switch e.Kind {
		case "checkpoint-triggered":
			at[e.Checkpoint] = len(out)
			out = append(out, chart.Checkpoint{ID: e.Checkpoint, From: float64(e.TUs-t0) / 1e6, To: math.Inf(1)})
		case "checkpoint-completed", "checkpoint-failed":
			i, ok := at[e.Checkpoint]
			if !ok || out[i].Outcome != chart.Pending {
				continue
			}
			c := &out[i]
			c.To = float64(e.TUs-t0) / 1e6
			c.Outcome = chart.Completed
			if e.Kind == "checkpoint-failed" {
				c.Outcome, c.Note = chart.Failed, e.Reason
			} else if e.Bytes != result.None {
				c.Note = chart.Quantity(float64(e.Bytes), "B") + " in flight"
			}
			if strings.Contains(e.Detail, "savepoint") {
				c.Note = strings.TrimPrefix(c.Note+", savepoint", ", ")
			}
		}
	}
	for i := range out {
		if out[i].Outcome == chart.Pending {
			out[i].To = float64(last-t0) / 1e6
		}
	}
	return out
}

// rates is the throughput line. A report says how many records left since the
// one before it, so their sum is known at every report and taken as even in
// between; the rate is that of a window around each point.
func rates(events []result.Event, t0 int64, from, to float64) []chart.Rate {
	const period = 0.1 // before the first report
	var times, sums []float64
	total := 0.0
	for _, e := range events {
		if e.Kind != "throughput" || e.Records == result.None {
			continue
		}
		t := float64(e.TUs-t0) / 1e6
		if len(times) == 0 {
			times, sums = append(times, t-period), append(sums, 0)
		}
		total += float64(e.Records)
		if n := len(times); t <= times[n-1] {
			sums[n-1] = total
		} else {
			times, sums = append(times, t), append(sums, total)
		}
	}
	window := max(0.2, (to-from)/100)
	step := window / 4
	if len(times) < 2 || (to-from)/step > 1<<16 {
		return nil
	}
	sum := func(t float64) float64 {
		i, _ := slices.BinarySearch(times, t)
		switch i {
		case 0:
			return 0
		case len(times):
			return total
		}
		share := (t - times[i-1]) / (times[i] - times[i-1])
		return sums[i-1] + share*(sums[i]-sums[i-1])
	}
	var out []chart.Rate
	for i := 0; ; i++ {
		t := from + float64(i)*step
		if t > min(to, times[len(times)-1]) {
			return out
		}
		if t < times[0] {
			continue
		}
		// At either end the window is cut, not filled with silence.
		a, b := max(t-window/2, times[0]), min(t+window/2, times[len(times)-1])
		out = append(out, chart.Rate{T: t, PerSecond: (sum(b) - sum(a)) / (b - a)})
	}
}

// story is one trial with its events, ready to be drawn.
type story struct {
	trial  *result.Trial
	events []result.Event
	t0     int64
	tracks *tracks
	end    float64 // the last moment worth showing, in seconds from t0
	lead   float64 // how much of the time before is there
	whole  bool    // it is of interest: a batch job
}

// newStory finds the times of a trial.
func newStory(t *result.Trial, events []result.Event) *story {
	s := &story{trial: t, events: events, tracks: follow(events)}
	faulted := false
	for _, e := range events {
		if e.Kind == "fault" && !faulted {
			s.t0, faulted = e.TUs, true
		}
	}
	if len(t.Faults) > 0 {
		s.t0 = t.Faults[0].T0Us
	}
	s.lead = float64(s.t0) / 1e6
	last := 0.0
	for _, e := range events {
		last = max(last, float64(e.TUs-s.t0)/1e6)
	}
	for _, f := range t.Faults {
		for _, m := range milestones {
			if v, ok := f.Metrics[m.metric]; ok {
				s.end = max(s.end, float64(f.T0Us-s.t0)/1e6+v)
			}
		}
	}
	_, s.whole = t.Metrics["makespan_s"]
	if s.end == 0 || s.whole {
		s.end = last // nothing was reached: all of it
	}
	s.end = min(s.end, max(last, 0.001))
	return s
}

// milestones are the moments that a timeline marks.
var milestones = []struct{ metric, text string }{
	{"time_to_running_s", "running"},
	{"time_to_drained_s", "drained"},
	{"time_to_first_checkpoint_s", "first checkpoint"},
	{"control_recovery_s", "a task runs"},
	{"time_to_parity_s", "parity"},
}

// marks are the faults of a trial and what was reached after each. Moments
// that lie too close together to be told apart share a mark.
func (s *story) marks(span float64) []chart.Mark {
	var out []chart.Mark
	faults := s.trial.Faults
	if len(faults) == 0 {
		for _, e := range s.events {
			if e.Kind == "fault" {
				faults = append(faults, result.Fault{Name: e.Detail, Kind: e.State, T0Us: e.TUs})
			}
		}
	}
	for _, f := range faults {
		t := float64(f.T0Us-s.t0) / 1e6
		name := f.Name
		if name == "" {
			name = f.Kind
		}
		out = append(out, chart.Mark{T: t, Text: name, Fault: true})
		begin := len(out)
		for _, m := range milestones {
			v, ok := f.Metrics[m.metric]
			if !ok {
				continue
			}
			shared := false
			for i := begin; i < len(out); i++ {
				if math.Abs(out[i].T-t-v) < span*0.004 {
					names, value, _ := strings.Cut(out[i].Text, "\u00a0")
					out[i].Text = names + ", " + m.text + "\u00a0" + value
					shared = true
					break
				}
			}
			if !shared {
				out = append(out, chart.Mark{T: t + v, Text: m.text + "\u00a0" + chart.Quantity(v, "s")})
			}
		}
	}
	if s.trial.Outcome != result.OK {
		out = append(out, chart.Mark{T: s.end, Text: string(s.trial.Outcome)})
	}
	return out
}

// strip is the least advanced state of all tasks together.
func (s *story) strip() []chart.Span {
	var all [][]span
	for _, spans := range s.tracks.spans {
		all = append(all, spans)
	}
	var out []chart.Span
	for _, x := range leastAdvanced(all) {
		out = append(out, chart.Span{From: float64(x.from-s.t0) / 1e6, To: float64(x.to-s.t0) / 1e6, State: x.state})
	}
	return out
}

// chart draws the story between two moments.
func (s *story) chart(title string, from, to float64) *chart.Timeline {
	return &chart.Timeline{
		Title: title, From: from, To: to,
		Lanes:       s.tracks.lanes(s.t0, s.t0+int64(s.end*1e6)),
		Marks:       s.marks(to - from),
		Checkpoints: checkpoints(s.events, s.t0),
		Rates:       rates(s.events, s.t0, from, to),
		Batch:       s.tracks.waves,
	}
}

// extent is the stretch of time that all stories of a workload are shown over.
func extent(stories []*story) (from, to float64) {
	lead := 0.0
	whole := false
	for _, s := range stories {
		to, lead = max(to, s.end), max(lead, s.lead)
		whole = whole || s.whole
	}
	if to <= 0 {
		to = 1
	}
	if whole {
		return -lead, to * 1.02
	}
	return -min(lead, max(0.12*to, 0.05)), to * 1.05
}
