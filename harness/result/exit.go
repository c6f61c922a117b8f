package result

import (
	"fmt"
	"slices"
)

// Exit is the exit code of a command.
type Exit int

// Exit codes, as scripts know them.
const (
	ExitOK           Exit = 0
	ExitRegression   Exit = 1 // or a broken threshold
	ExitUsage        Exit = 2 // or configuration
	ExitInconclusive Exit = 3
	ExitFailed       Exit = 4 // a trial failed, the run timed out, an expected metric is absent
	ExitBaseline     Exit = 5 // baseline missing or not comparable
	ExitWrong        Exit = 6 // wrong output
	ExitInterrupted  Exit = 130
)

// severity orders the exit codes, the most severe first.
var severity = []Exit{ExitInterrupted, ExitUsage, ExitWrong, ExitFailed, ExitBaseline, ExitRegression, ExitInconclusive, ExitOK}

// Worse returns the more severe of two exit codes.
func Worse(a, b Exit) Exit {
	if slices.Index(severity, a) < slices.Index(severity, b) {
		return a
	}
	return b
}

// Exit is the exit code that the lines of a run give, with the reasons. Why
// trials are missing, the lines do not tell: the code for it is the caller's.
func (l *Loaded) Exit(missing Exit) (Exit, []string) {
	code := ExitOK
	var reasons []string
	say := func(c Exit, format string, args ...any) {
		code = Worse(code, c)
		reasons = append(reasons, fmt.Sprintf(format, args...))
	}
	expected := map[string][]string{}
	for _, w := range l.Run.Workloads {
		expected[w.Name] = w.Expected
	}
	measured, unsupported, why := 0, 0, ""
	for _, t := range l.Trials {
		where := fmt.Sprintf("trial %s (%s %s block %d)", t.Trial, t.Workload, t.Cell, t.Block)
		switch t.Outcome {
		case OK:
			measured++
			for _, m := range expected[t.Workload] {
				_, ok := t.Metrics[m]
				if _, known := t.Absent[m]; !ok && !known {
					say(ExitFailed, "%s: the metric %s is absent", where, m)
				}
			}
		case Incorrect:
			say(ExitWrong, "%s: %s", where, t.Reason)
		case Unsupported:
			if unsupported++; why == "" {
				why = t.Reason
			}
		case TrialInterrupted:
			// counted as missing
		default:
			say(ExitFailed, "%s: %s: %s", where, t.Outcome, t.Reason)
		}
	}
	for _, u := range l.Unusable {
		if len(l.Missing) > 0 && (u.slot == nil || slices.Contains(l.Missing, *u.slot)) {
			say(ExitFailed, "%s", u)
		}
	}
	if unsupported > 0 && measured == 0 {
		say(ExitFailed, "nothing was measured: every cell is unsupported; the first: %s", why)
	}
	if n := len(l.Missing); n > 0 {
		say(missing, "%d of %d trials were not run", n, l.Run.Plan.Trials)
	}
	return code, reasons
}
