package batch

import (
	"fmt"
	"maps"
	"slices"

	"benchrun/runtime/scheduling"
)

// unassigned is where a split is that no subtask has.
const unassigned = -1

// Ledger knows where each split of a source is: with the enumerator, with a
// subtask that runs, or contained in one that has finished. A split that would
// be in two places is refused.
type Ledger struct {
	vertex   string
	where    map[string]int
	of       map[int]map[string]bool // the inverse
	finished map[int]bool
}

// NewLedger makes the ledger of a source.
func NewLedger(vertex string) *Ledger {
	return &Ledger{vertex: vertex, where: map[string]int{}, of: map[int]map[string]bool{}, finished: map[int]bool{}}
}

// put moves a split.
func (l *Ledger) put(split string, subtask int) {
	if has, known := l.where[split]; known {
		delete(l.of[has], split)
	}
	l.where[split] = subtask
	if l.of[subtask] == nil {
		l.of[subtask] = map[string]bool{}
	}
	l.of[subtask][split] = true
}

// SplitError: a split is in two places.
type SplitError struct {
	Vertex, Split string
	Has, Wants    int
}

func (e *SplitError) Error() string {
	return fmt.Sprintf("split %q of vertex %q belongs to subtask %d, and subtask %d has it, too", e.Split, e.Vertex, e.Has, e.Wants)
}

// Discover: the enumerator has found splits. Those that somebody has stay there.
func (l *Ledger) Discover(splits []string) {
	for _, s := range splits {
		if _, known := l.where[s]; !known {
			l.put(s, unassigned)
		}
	}
}

// Assign: a subtask gets splits, all of them or, with an error, none.
func (l *Ledger) Assign(subtask int, splits []string) error {
	for _, s := range splits {
		if has, known := l.where[s]; known && has != unassigned && (has != subtask || l.finished[subtask]) {
			return &SplitError{l.vertex, s, has, subtask}
		}
	}
	for _, s := range splits {
		l.put(s, subtask)
	}
	return nil
}

// UnreadError: a subtask has finished without a split that it was given.
type UnreadError struct {
	Vertex, Split string
	Subtask       int
}

func (e *UnreadError) Error() string {
	return fmt.Sprintf("subtask %d of vertex %q has finished without split %q, which it was given", e.Subtask, e.Vertex, e.Split)
}

// unread tells whether a subtask that has read these splits lacks one.
func (l *Ledger) unread(subtask int, splits []string) error {
	for _, s := range l.Of(subtask) {
		if !slices.Contains(splits, s) {
			return &UnreadError{l.vertex, s, subtask}
		}
	}
	return nil
}

// unread tells whether the end of a source task lacks splits that it was given.
func (t *task) unread(splits []string) error {
	if !t.v.Source {
		return nil
	}
	return t.v.ledger.unread(t.subtask, splits)
}

// Finish: a subtask has finished, and these are all splits it has read.
func (l *Ledger) Finish(subtask int, splits []string) error {
	if err := l.Assign(subtask, splits); err != nil {
		return err
	}
	if err := l.unread(subtask, splits); err != nil {
		return err
	}
	l.finished[subtask] = true
	return nil
}

// Return takes the splits of a subtask back, all or those named.
func (l *Ledger) Return(subtask int, splits ...string) {
	delete(l.finished, subtask)
	for s := range l.of[subtask] {
		if len(splits) == 0 || slices.Contains(splits, s) {
			l.put(s, unassigned)
		}
	}
}

// Reset takes all back.
func (l *Ledger) Reset() {
	clear(l.finished)
	for s := range l.where {
		l.put(s, unassigned)
	}
}

// Unassigned are the splits that nobody has, sorted.
func (l *Ledger) Unassigned() []string { return l.Of(unassigned) }

// Of are the splits of a subtask, sorted.
func (l *Ledger) Of(subtask int) []string {
	return slices.Sorted(maps.Keys(l.of[subtask]))
}

// splits keeps the ledger of a source; a split in two places fails the job.
func (s *Scheduler) splits(e Event) {
	var err error
	switch e := e.(type) {
	case SplitsDiscovered:
		if v := s.byID[e.Vertex]; v != nil {
			v.ledger.Discover(e.Splits)
		}
	case SplitsAssigned:
		if v := s.byID[e.Task.Vertex]; v != nil {
			err = v.ledger.Assign(e.Task.Subtask, e.Splits)
		}
	case SplitsReturned:
		if v := s.byID[e.Task.Vertex]; v != nil {
			v.ledger.Return(e.Task.Subtask, e.Splits...)
		}
	}
	if err != nil {
		s.end(scheduling.StatusFailed, err)
	}
}
