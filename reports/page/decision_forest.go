package page

import (
	"html/template"
	"slices"

	"benchrun/reports/chart"
	"benchrun/reports/verdict"
)

// effect is a judged metric as a row of a forest plot.
func effect(j *verdict.Judged, name string) chart.Effect {
	return chart.Effect{
		Label: name, Ratio: j.Ratio, Low: j.CILow, High: j.CIHigh, Band: j.Threshold.Relative, N: j.N, Planned: j.Planned, Verdict: string(j.Verdict), Why: j.Why,
	}
}

// forests draws one forest plot a workload.
func (v *decisionView) forests(d *verdict.Decision) {
	var workloads []string
	for _, j := range d.Judged {
		if !slices.Contains(workloads, j.Workload) {
			workloads = append(workloads, j.Workload)
		}
	}
	for _, w := range workloads {
		f := &chart.Forest{Title: w + ": " + v.Head + " against " + v.Base, Reference: v.Base}
		if v.Base == "" {
			f.Reference = "the base"
		}
		for _, j := range d.Judged {
			if j.Workload != w {
				continue
			}
			name := short(j.Metric)
			i := slices.IndexFunc(f.Groups, func(g chart.ForestGroup) bool { return g.Name == name })
			if i < 0 {
				i, f.Groups = len(f.Groups), append(f.Groups, chart.ForestGroup{Name: name, Better: string(j.Better)})
			}
			f.Groups[i].Rows = append(f.Groups[i].Rows, effect(&j, label(j.Cell)))
		}
		v.Figures = append(v.Figures, figure{ID: "forest-" + slug(w), Title: w, Note: "ratios " + v.Head + " to " + v.Base + ", the smallest first", File: plotName(gatePlots + w), SVG: template.HTML(f.SVG()), picture: f})
	}
}
