package trial

import (
	"errors"
	"fmt"
	"strings"

	"benchrun/harness/result"
	"benchrun/runtime/timeline"
)

// blame adds to the reason of a trial that did not get on what its job was failing
// from all the time.
func (e *execution) blame(err error) error {
	var s *stop
	if !errors.As(err, &s) || s.outcome != result.Timeout {
		return err
	}
	why := failures(e.Log.Sorted())
	if why == "" {
		return err
	}
	return &stop{s.outcome, s.reason + "; " + why}
}

// failures words how often a job failed, and from what; empty: it did not. A restart
// that has no reason was asked for.
func failures(events []timeline.Event) string {
	var restarts, tasks []string
	for _, e := range events {
		switch {
		case e.Reason == "":
		case e.Kind == timeline.JobState && e.State == "RESTARTING":
			restarts = append(restarts, e.Reason)
		case e.Kind == timeline.TaskState && e.State == "FAILED":
			tasks = append(tasks, fmt.Sprintf("%s/%d: %s", e.Vertex, e.Subtask, e.Reason))
		}
	}
	switch {
	case len(restarts) > 0:
		return often("the job has restarted", restarts)
	case len(tasks) > 0: // a region restarts without a word of the job
		return often("tasks have failed", tasks)
	}
	return ""
}

func often(what string, reasons []string) string {
	first, last := brief(reasons[0]), brief(reasons[len(reasons)-1])
	switch n := len(reasons); {
	case n == 1:
		return fmt.Sprintf("%s once: %s", what, last)
	case cause(first) == cause(last):
		return fmt.Sprintf("%s %d times, last: %s", what, n, last)
	default:
		return fmt.Sprintf("%s %d times, first: %s; last: %s", what, n, first, last)
	}
}

// cause leaves out which task it was.
func cause(reason string) string {
	if _, after, ok := strings.Cut(reason, ": "); ok {
		return after
	}
	return reason
}

// brief is the first line of a reason, cut where nobody would read on.
func brief(reason string) string {
	const limit = 300
	line, _, _ := strings.Cut(strings.TrimSpace(reason), "\n")
	if runes := []rune(line); len(runes) > limit {
		return string(runes[:limit]) + " …"
	}
	return line
}
