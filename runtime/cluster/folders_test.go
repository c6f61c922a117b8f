package cluster

import (
	"fmt"
	"testing"
)

// Fails if a folder that is kept counts as forgone, if one that two are to have
// does when one of them is gone, or if only the last of those that had it is told. Of
// the unheard, if one that is to come is forgotten, one that is gone is not, or if
// what a worker said does not count.
func TestFolders(t *testing.T) {
	f := &folders{}
	for i, x := range []struct {
		what    string
		do      func()
		forgone string
		heard   []int
		unheard string
	}{
		{"two workers", func() { f.give(0, "a", false); f.give(1, "b", false) }, "[]", []int{1}, "[0]"},
		{"one dies", func() { f.drop("b") }, "[1]", []int{0}, "[]"},
		{"the other is to be replaced, and dies", func() { f.keep("a"); f.drop("a") }, "[1]", nil, "[0]"},
		{"the replacement starts", func() { f.give(2, "a", true) }, "[1]", []int{0}, "[2]"},
		{"it is to be replaced, too, and dies", func() { f.keep("a"); f.drop("a") }, "[1]", []int{2}, "[]"},
		{"the next one does not come", func() { f.give(3, "a", true); f.drop("a") }, "[0 1 2 3]", nil, "[]"},
	} {
		x.do()
		if got := fmt.Sprint(f.forgone()); got != x.forgone {
			t.Errorf("step %d, %s: %s are forgone, not %s", i, x.what, got, x.forgone)
		}
		if got := fmt.Sprint(f.unheard(x.heard)); got != x.unheard {
			t.Errorf("step %d, %s: after %v %s are unheard, not %s", i, x.what, x.heard, got, x.unheard)
		}
	}
}
