package plan

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"benchrun/workloads/spec"
)

// term is one condition of a filter.
type term struct {
	kind   string // cell, tag, workload
	glob   string
	negate bool
}

type filter []term

// parseOnly reads a filter: terms separated by spaces that must all hold.
func parseOnly(text string) (filter, error) {
	var out filter
	for _, word := range strings.Fields(text) {
		t := term{}
		rest := word
		if t.negate = strings.HasPrefix(rest, "!"); t.negate {
			rest = rest[1:]
		}
		var ok bool
		t.kind, t.glob, ok = strings.Cut(rest, ":")
		if !ok || !slices.Contains([]string{"cell", "tag", "workload"}, t.kind) {
			return nil, fmt.Errorf("--only: %q is no term; terms are cell:GLOB, tag:GLOB, workload:GLOB, with a leading ! to negate", word)
		}
		if t.glob == "" {
			return nil, fmt.Errorf("--only: %q names nothing after the colon", word)
		}
		if _, err := path.Match(t.glob, ""); err != nil {
			return nil, fmt.Errorf("--only: %q is no pattern: * stands for anything, ? for one character, [a-c] for one of several, and \\ takes the next as it is", t.glob)
		}
		out = append(out, t)
	}
	return out, nil
}

func (f filter) matches(file *spec.File, cell string) bool {
	for _, t := range f {
		ok := false
		match := func(s string) {
			m, _ := path.Match(t.glob, s)
			ok = ok || m
		}
		switch t.kind {
		case "cell":
			match(cell)
		case "workload":
			match(file.Name)
		case "tag":
			for _, tag := range file.Tags {
				match(tag)
			}
		}
		if ok == t.negate {
			return false
		}
	}
	return true
}
