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

// columnOf is the cell and build of a trial: the slot of its block 0.
func columnOf(t *Trial) Slot {
	return Slot{Workload: t.Workload, Cell: t.Cell, Build: t.Build}
}

// havePrimary tells of which cells and builds there is a sample of the primary metric:
// without one there is nothing to judge, whatever the reason.
func (l *Loaded) havePrimary() map[Slot]bool {
	out := map[Slot]bool{}
	primary := map[string]string{}
	for _, w := range l.Run.Workloads {
		primary[w.Name] = w.Primary
	}
	for i := range l.Trials {
		t := &l.Trials[i]
		if _, ok := t.Value(primary[t.Workload]); ok && t.Outcome == OK && !t.Warmup {
			out[columnOf(t)] = true
		}
	}
	return out
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
	workloads := map[string]Workload{}
	for _, w := range l.Run.Workloads {
		workloads[w.Name] = w
	}
	judged := l.havePrimary()
	measured, unsupported, why := 0, 0, ""
	for _, t := range l.Trials {
		where := fmt.Sprintf("trial %s (%s %s block %d)", t.Trial, t.Workload, t.Cell, t.Block)
		switch t.Outcome {
		case OK:
			measured++
			w := workloads[t.Workload]
			for _, m := range w.Expected {
				if _, ok := t.Value(m); ok {
					continue
				}
				switch why, known := t.Absent[m]; {
				case !known:
					say(ExitFailed, "%s: the metric %s is absent", where, m)
				case m == w.Primary && !judged[columnOf(&t)]:
					say(ExitFailed, "%s: the primary metric %s is absent, as in all trials of the cell: %s", where, m, why)
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
