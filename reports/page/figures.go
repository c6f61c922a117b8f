package page

import (
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"math"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/stats"
)

// overviews compare the medians of the three metrics after each fault, or of
// the primary one where those were not measured.
func (w *workloadView) overviews() {
	if w.twinned() && w.has("makespan_s") {
		w.twinOverview()
		return
	}
	for k, f := range w.faults {
		metrics := w.present(f.prefix, together)
		unit := "s"
		title := "Medians after " + f.title()
		if len(metrics) == 0 {
			if k > 0 {
				continue // a fault that stops no task
			}
			metrics = []string{w.spec.Primary}
			title = capital(short(w.spec.Primary)) + ": medians"
			unit = metricOf(w.spec.Primary).Unit
		}
		b := &chart.Bars{Title: w.Name + ": " + lower(title), Unit: unit}
		for _, m := range metrics {
			b.Series = append(b.Series, short(strings.TrimPrefix(m, f.prefix)))
		}
		for i := range w.columns {
			g := chart.Group{Label: w.labels[i]}
			for _, m := range metrics {
				w.bar(&g, i, m)
			}
			b.Groups = append(b.Groups, g)
		}
		name := "overview"
		if k > 0 {
			name += "-" + slug(f.name)
		}
		w.Overviews = append(w.Overviews, figure{
			ID: w.ID + "-" + name, Title: title, File: plotName(w.Name, name), SVG: template.HTML(b.SVG()), picture: b, Series: b.Series,
		})
	}
}

// bar adds the median of a metric in a column to a group of bars; below 0 there
// is no column.
func (w *workloadView) bar(g *chart.Group, i int, metric string) {
	var s result.Stat
	ok := false
	if i >= 0 {
		s, ok = w.stat(i, metric)
	}
	if !ok {
		g.Values, g.Notes, g.Low, g.High = append(g.Values, nil), append(g.Notes, ""), append(g.Low, nil), append(g.High, nil)
		return
	}
	g.Values, g.Low, g.High = append(g.Values, &s.Median), append(g.Low, s.CILow), append(g.High, s.CIHigh)
	g.Notes = append(g.Notes, "median of "+count(s.N, "trial", "trials"))
}

// twinOverview sets the makespans with job recovery beside those without, a group
// for each fault and one for none.
func (w *workloadView) twinOverview() {
	b := &chart.Bars{Title: w.Name + ": makespan with and without job recovery", Unit: "s", Series: []string{"no job recovery", "job recovery"}}
	for i, k := range w.twins() {
		if k < 0 {
			continue
		}
		g := chart.Group{Label: w.scenes[i]}
		if g.Label == "" {
			g.Label = short("makespan_s")
		}
		if w.columns[i].Name != w.columns[i].Cell {
			g.Label += " @ " + w.columns[i].Build
		}
		w.bar(&g, k, "makespan_s")
		w.bar(&g, i, "makespan_s")
		b.Groups = append(b.Groups, g)
	}
	w.Overviews = append(w.Overviews, figure{
		ID: w.ID + "-overview", Title: "Makespan with and without job recovery", Note: "medians with their 95 % intervals, where there are six samples",
		File: plotName(w.Name, "overview"), SVG: template.HTML(b.SVG()), picture: b, Series: b.Series,
	})
}

// points draws every sample of the metrics that count, for every fault.
func (w *workloadView) points() {
	var metrics []string
	add := func(m string) {
		if w.has(m) && !slices.Contains(metrics, m) {
			metrics = append(metrics, m)
		}
	}
	add(w.spec.Primary)
	first := 0
	for k, f := range w.faults {
		for _, m := range together {
			add(f.prefix + m)
		}
		if k == 0 {
			first = len(metrics)
		}
	}
	for k, m := range metrics {
		d := metricOf(m)
		p := &chart.Points{Title: w.Name + ": " + short(m), Unit: d.Unit}
		for i := range w.columns {
			c := &w.columns[i]
			r := chart.Row{Label: w.labels[i], Planned: c.Planned, Failed: c.Failed}
			for j := range c.Trials {
				t := &c.Trials[j]
				if x, ok := t.Value(m); ok && t.Outcome == result.OK {
					r.Values = append(r.Values, chart.Value{V: x, Note: fmt.Sprintf("block %d, trial %s", t.Block, t.Trial)})
				}
			}
			if s, ok := w.stat(i, m); ok {
				r.Median, r.Low, r.High = &s.Median, s.CILow, s.CIHigh
			}
			p.Rows = append(p.Rows, r)
		}
		f := figure{ID: w.ID + "-" + slug(m), Title: short(m), File: plotName(w.Name, m), SVG: template.HTML(p.SVG()), picture: p, Note: m}
		if d.Better != result.Neutral {
			f.Note += ", " + string(d.Better) + " is better"
		}
		if k < first {
			w.Plots = append(w.Plots, f)
		} else {
			w.Later = append(w.Later, f)
		}
	}
}

// timelines draws one trial a cell: the one whose primary metric is nearest the
// median, else the last that failed.
func (w *workloadView) timelines(dir string) error {
	stories := make([]*story, len(w.columns))
	for i := range w.columns {
		t := w.typical(i)
		if t == nil {
			continue
		}
		events, err := result.LoadEvents(dir, t.Trial)
		if errors.Is(err, fs.ErrNotExist) {
			continue // see Gaps
		}
		if err != nil {
			w.Warnings = append(w.Warnings, fmt.Sprintf("the timeline of trial %s is damaged: %v", t.Trial, err))
		}
		if len(events) > 0 {
			stories[i] = newStory(t, events)
			stories[i].tracks.waves = w.spec.Mode == "batch"
		}
	}
	w.stories = stories
	from, to := extent(slices.DeleteFunc(slices.Clone(stories), func(s *story) bool { return s == nil }))
	charts := make([]*chart.Timeline, len(stories))
	top, left := 0.0, 0.0
	for i, s := range stories {
		if s == nil {
			continue
		}
		charts[i] = s.chart(w.Name+": "+w.labels[i], from, to)
		top = max(top, charts[i].RateTop())
	}
	for _, c := range charts {
		if c != nil {
			c.MaxRate = top
			left = max(left, c.NameWidth())
		}
	}
	if w.spec.Mode != "batch" { // there it is the work that tells
		w.sideBySide(stories, charts, from, to)
	}
	for i, c := range charts {
		if c == nil {
			continue
		}
		c.Left = left
		t := stories[i].trial
		note := fmt.Sprintf("trial %s, block %d", t.Trial, t.Block)
		if t.Outcome != result.OK {
			note += fmt.Sprintf(" – %s in step %s: %s", t.Outcome, t.Phase, t.Reason)
		}
		w.Timelines = append(w.Timelines, figure{
			ID: w.ID + "-timeline-" + slug(w.columns[i].Name), Title: w.labels[i], Note: note,
			File: plotName(w.Name, "timeline", w.columns[i].Name), SVG: template.HTML(c.SVG()), picture: c,
		})
	}
	return nil
}

// sideBySide draws the same trials on one axis, each as a strip.
func (w *workloadView) sideBySide(stories []*story, charts []*chart.Timeline, from, to float64) {
	b := &chart.SideBySide{Title: w.Name + ": one trial a cell", From: from, To: to}
	for i, s := range stories {
		if s == nil {
			continue
		}
		r := chart.Recovery{Label: w.labels[i], Spans: s.strip(), Checkpoints: charts[i].Checkpoints, Rates: charts[i].Rates}
		t := s.trial
		if len(t.Faults) > 0 {
			if v, ok := t.Faults[0].Metrics["time_to_first_checkpoint_s"]; ok {
				r.Safe = &v
			}
			if v, ok := t.Faults[0].Metrics["time_to_drained_s"]; ok {
				r.Drained = &v
			}
		}
		if t.Outcome != result.OK {
			r.Ended = string(t.Outcome)
		}
		if len(b.Faults) == 0 {
			for _, m := range charts[i].Marks {
				if m.Fault {
					b.Faults = append(b.Faults, m)
				}
			}
			if len(b.Faults) > 1 {
				b.Faults = b.Faults[:1] // later faults come at times of their own in each trial
			}
		}
		b.Rows = append(b.Rows, r)
	}
	if len(b.Rows) == 0 {
		return
	}
	w.Compared = append(w.Compared, figure{ID: w.ID + "-side-by-side", Title: "One trial a cell, side by side", Note: "“safe” is the first checkpoint after the fault",
		File: plotName(w.Name, "side-by-side"), SVG: template.HTML(b.SVG()), picture: b})
}

// typical picks the trial of a column that its timeline shows.
func (w *workloadView) typical(i int) *result.Trial {
	c := &w.columns[i]
	middle, have := stats.Median(c.Samples(w.spec.Primary))
	var best *result.Trial
	for j := range c.Trials {
		t := &c.Trials[j]
		switch {
		case best == nil, best.Outcome != result.OK:
			best = t // at last the last of those that failed
		case t.Outcome == result.OK && have:
			if math.Abs(t.Metrics[w.spec.Primary]-middle) < math.Abs(best.Metrics[w.spec.Primary]-middle) {
				best = t
			}
		}
	}
	return best
}
