package cluster

import (
	"testing"

	"benchrun/runtime/control"
)

// Who kills a worker replaces it: of two that want to at the same time only one does, or
// two workers would have one folder.
//
// Fails if claim does not look at who is dying, or at who is live.
func TestAWorkerIsKilledOnce(t *testing.T) {
	var r roster[int]
	r.join(1)
	r.join(2)
	for i, x := range []struct {
		w    int
		want bool
	}{{1, true}, {1, false}, {2, true}, {3, false}} {
		if got := r.claim(x.w); got != x.want {
			t.Errorf("claim %d of %d: %t", i, x.w, got)
		}
	}
	if r.leave(1, control.Load{}); r.claim(1) {
		t.Error("one that is gone was claimed")
	}
}
