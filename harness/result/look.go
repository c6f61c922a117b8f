package result

import (
	"fmt"
	"slices"
)

// SecondLook marks the end of a plan's order as blocks that were added after
// the first look at the run had alarmed. A run has at most one: every further
// look at the same trials would be another chance for another verdict.
type SecondLook struct {
	From   int `json:"from"`   // index of its first trial in plan.order
	Blocks int `json:"blocks"` // that it adds to each of its cells
}

// looks splits the order of a plan into what was planned at first and what the
// second look added.
func (p *Plan) looks() (first, second []Slot) {
	if p.SecondLook == nil {
		return p.Order, nil
	}
	return p.Order[:p.SecondLook.From], p.Order[p.SecondLook.From:]
}

// Again lists the cells that the second look measures again, in the order of
// the plan's cells.
func (p *Plan) Again() []Cell {
	_, second := p.looks()
	var out []Cell
	for _, c := range p.Cells {
		if slices.ContainsFunc(second, func(s Slot) bool { return s.Workload == c.Workload && s.Cell == c.Cell }) {
			out = append(out, c)
		}
	}
	return out
}

// MissingByLook is Missing, apart for both looks.
func (l *Loaded) MissingByLook() (first, second []Slot) {
	_, added := l.Run.Plan.looks()
	for _, s := range l.Missing {
		if slices.Contains(added, s) {
			second = append(second, s)
		} else {
			first = append(first, s)
		}
	}
	return first, second
}

// FirstLook is the run as it was before its second look. A second look that
// was cut off has no verdict, and spoils none.
func (l *Loaded) FirstLook() *Loaded {
	order, added := l.Run.Plan.looks()
	if len(added) == 0 {
		return l
	}
	second := map[Slot]bool{}
	for _, s := range added {
		second[s] = true
	}
	of := func(t Trial) bool { return second[t.Key()] }
	cut := *l
	cut.Run.Plan.Order, cut.Run.Plan.Trials, cut.Run.Plan.SecondLook = order, len(order), nil
	cut.Trials = slices.DeleteFunc(slices.Clone(l.Trials), of)
	cut.Lines = slices.DeleteFunc(slices.Clone(l.Lines), of)
	cut.Missing, _ = l.MissingByLook()
	cut.Unusable = slices.DeleteFunc(slices.Clone(l.Unusable), func(u Unusable) bool { return u.slot != nil && second[*u.slot] })
	if len(cut.Missing) == 0 {
		cut.Run.State = Complete
	}
	return &cut
}

// Settled is the run as reports show it: the run itself, or, if its second look
// was cut off, what it was before, with a warning. The blocks of half a second look
// are neither missing nor do they count.
func (l *Loaded) Settled() *Loaded {
	_, missing := l.MissingByLook()
	if len(missing) == 0 {
		return l
	}
	first, look := l.FirstLook(), l.Run.Plan.SecondLook
	first.Warnings = append(slices.Clone(l.Warnings), fmt.Sprintf("a second look was begun, and %d of its %d trials are missing: what it has measured does not count. Go on with: benchrun gate --confirm %d .../%s",
		len(missing), len(l.Run.Plan.Order)-look.From, look.Blocks, l.Run.Run))
	return first
}
