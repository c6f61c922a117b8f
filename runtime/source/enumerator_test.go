package source

import (
	"fmt"
	"testing"
)

// handedOut notes what an enumerator gives to each subtask.
type handedOut struct {
	parallelism int
	got         map[int][]Split
}

func (h *handedOut) Parallelism() int { return h.parallelism }
func (h *handedOut) Assign(subtask int, splits []Split) {
	h.got[subtask] = append(h.got[subtask], splits...)
}
func (h *handedOut) NoMoreSplits(int)  {}
func (h *handedOut) Registered() []int { return nil }

// Splits that come back while others are still to be handed out go to the subtask
// that had them, each once, and the rest as if nothing had happened.
// Fails if AddSplitsBack leaves the shares as they are.
func TestStaticSplitsComeBack(t *testing.T) {
	var splits []Split
	for i := range 16 {
		splits = append(splits, Split{ID: fmt.Sprint(i)})
	}
	e := NewStatic(splits)
	h := &handedOut{4, map[int][]Split{}}
	e.AddReader(h, 1)
	back := h.got[1]
	h.got[1] = nil
	e.AddSplitsBack(back, 1)
	for _, s := range []int{1, 0, 2, 3} {
		e.AddReader(h, s)
	}
	for s := range 4 {
		var ids []string
		for _, x := range h.got[s] {
			ids = append(ids, x.ID)
		}
		if got, want := fmt.Sprint(ids), fmt.Sprint([]int{s, s + 4, s + 8, s + 12}); got != want {
			t.Errorf("subtask %d got %s, want %s", s, got, want)
		}
	}
}
