package page

import (
	"fmt"
	"strings"

	"benchrun/reports/chart"
	"benchrun/reports/verdict"
)

// DecisionMarkdown is a decision for pull requests and job pages. What decides
// nothing is not in it.
func DecisionMarkdown(d *verdict.Decision) string { return decisionMarkdown(d, decides) }

// ComparisonMarkdown is it for those who asked for no exit code.
func ComparisonMarkdown(d *verdict.Decision) string { return decisionMarkdown(d, compares) }

func decisionMarkdown(d *verdict.Decision, what asked) string {
	d = finiteDecision(d)
	v := newDecision(d, what)
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", escapeMarkdown(v.ExitWords), escapeMarkdown(v.Title+" · "+strings.Join(v.Subtitle, " · ")))
	for _, h := range v.Headline {
		fmt.Fprintf(&b, "%s ", escapeMarkdown(h))
	}
	fmt.Fprintf(&b, "%s.\n\n", strings.ToUpper(v.ExitText[:1])+v.ExitText[1:])
	bullets(&b, v.Reasons)
	if len(d.Judged) > 0 {
		b.WriteString("| workload | cell | metric | before | after | ratio | pairs | threshold | verdict | why |\n|---|---|---|---:|---:|---:|---:|---|---|---|\n")
		for i := range d.Judged {
			markdownJudged(&b, &d.Judged[i])
		}
		b.WriteString("\n")
	}
	if len(v.Warnings) > 0 {
		b.WriteString("Warnings:\n\n")
		bullets(&b, v.Warnings)
	}
	if v.ControlWords != "" {
		fmt.Fprintf(&b, "Controls: %s\n", escapeMarkdown(v.ControlWords))
	}
	return limited(b.String())
}

func markdownJudged(b *strings.Builder, j *verdict.Judged) {
	number := func(p *float64) string {
		if p == nil {
			return "–"
		}
		return chart.Quantity(*p, j.Unit)
	}
	ratio := "–"
	if j.Ratio != nil {
		ratio = ratioText(*j.Ratio)
		if j.CILow != nil && j.CIHigh != nil {
			ratio += " [" + chart.Number(*j.CILow, "ratio") + " – " + chart.Number(*j.CIHigh, "ratio") + "]"
		}
	}
	threshold := thresholdWords(j.Threshold, j.Unit)
	if j.Threshold.Source != "" {
		threshold += " (" + j.Threshold.Source + ")"
	}
	for _, s := range []string{j.Workload, label(j.Cell), short(j.Metric), number(j.BaseMedian), number(j.HeadMedian), ratio, fmt.Sprintf("%d of %d", j.N, j.Planned), threshold, verdictCell(j.Verdict, "").Text, j.Why} {
		fmt.Fprintf(b, "| %s ", escapeMarkdown(s))
	}
	b.WriteString("|\n")
}

// DecisionJUnit is a decision as test cases, one a judged metric: slower is a
// failure, a metric that was not measured an error, inconclusive is skipped.
// The reasons of an exit code that no case explains are an error of their own.
func DecisionJUnit(d *verdict.Decision) ([]byte, error) {
	d = finiteDecision(d)
	all := junitSuites{Name: d.Run}
	at := map[string]int{}
	for i := range d.Judged {
		j := &d.Judged[i]
		k, ok := at[j.Workload]
		if !ok {
			k = len(all.Suites)
			at[j.Workload] = k
			all.Suites = append(all.Suites, junitSuite{Name: j.Workload})
		}
		all.Suites[k].Cases = append(all.Suites[k].Cases, decisionCase(j))
	}
	if infrastructure(d) {
		all.Suites = append(all.Suites, junitSuite{Name: "gate", Cases: []junitCase{{
			Class: "gate", Name: exitText(d.Exit), Error: &junitResult{d.Outcome, exitText(d.Exit), strings.Join(d.Reasons, "\n")},
		}}})
	}
	for i := range all.Suites {
		all.count(&all.Suites[i])
	}
	return encodeJUnit(all)
}

// infrastructure tells whether the exit code says something that no verdict
// does.
func infrastructure(d *verdict.Decision) bool {
	switch d.Exit {
	case 0, 1, 3:
		return len(d.Judged) == 0
	}
	return true
}

func decisionCase(j *verdict.Judged) junitCase {
	c := junitCase{Class: j.Workload, Name: label(j.Cell) + ": " + j.Metric}
	var facts []string
	if j.BaseMedian != nil && j.HeadMedian != nil {
		facts = append(facts, fmt.Sprintf("before %s, after %s", chart.Quantity(*j.BaseMedian, j.Unit), chart.Quantity(*j.HeadMedian, j.Unit)))
	}
	if j.Ratio != nil {
		facts = append(facts, "ratio "+chart.Number(*j.Ratio, "ratio"))
	}
	facts = append(facts, fmt.Sprintf("%d of %d pairs", j.N, j.Planned), "threshold "+thresholdWords(j.Threshold, j.Unit))
	if j.Threshold.Source != "" {
		facts = append(facts, "from "+j.Threshold.Source)
	}
	c.Out = strings.Join(facts, ", ")
	why := j.Why
	if why == "" {
		why = string(j.Verdict)
	}
	switch {
	case j.N == 0:
		c.Error = &junitResult{"not measured", why, fmt.Sprintf("failed trials: %d before, %d after", j.BaseFailed, j.HeadFailed)}
	case j.Verdict == verdict.Slower:
		c.Failure = &junitResult{"slower", why, c.Out}
	case j.Verdict != verdict.Faster && j.Verdict != verdict.Same:
		c.Skipped = &junitResult{Message: "inconclusive: " + why}
	}
	return c
}
