package main

import (
	"strings"
	"testing"

	"benchrun/harness/result"
	"benchrun/reports/verdict"
)

// Fails if a verdict of either side is not looked at, or the exit code is not
// held against it.
func TestSelfTestFailures(t *testing.T) {
	decision := func(same, slowed verdict.Verdict, code result.Exit) *verdict.Decision {
		d := &verdict.Decision{Exit: code, Outcome: verdict.Outcome(code)}
		for cell, v := range map[string]verdict.Verdict{"default@same": same, "default@slowed": slowed} {
			if v != "" {
				d.Judged = append(d.Judged, verdict.Judged{Cell: cell, Verdict: v})
			}
		}
		return d
	}
	for _, c := range []struct {
		same, slowed verdict.Verdict
		code         result.Exit
		want         string // of the first failure; empty: passes
	}{
		{verdict.Same, verdict.Slower, 1, ""},
		{verdict.Inconclusive, verdict.Slower, 1, ""},
		{verdict.Same, verdict.Same, 0, "20 % was called same"},
		{verdict.Same, verdict.Inconclusive, 3, "20 % was called inconclusive"},
		{verdict.Same, verdict.Faster, 0, "20 % was called faster"},
		{verdict.Slower, verdict.Slower, 1, "equal builds were called slower"},
		{verdict.Faster, verdict.Slower, 1, "equal builds were called faster"},
		{"", verdict.Slower, 1, "equal builds were not compared"},
		{verdict.Same, "", 0, "was not looked at"},
		{verdict.Same, verdict.Slower, 0, "came with exit code 0"},
		{verdict.Same, verdict.Slower, 4, "the comparison came to failed"},
	} {
		got := strings.Join(selfTestFailures(decision(c.same, c.slowed, c.code)), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s, %s, %d: %q, want %q", c.same, c.slowed, c.code, got, c.want)
		}
	}
}
