package batch

import (
	"testing"
	"time"
)

// Fails if the pause is not bounded, if it overflows, or if there is one before
// the first restart, which is what is measured.
func TestSetbacks(t *testing.T) {
	const ms = time.Millisecond
	var n setback
	for i, want := range []time.Duration{0, 10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, restartPauseMax, restartPauseMax} {
		if got := n.next(); got != want {
			t.Errorf("failure %d: %v, want %v", i+1, got, want)
		}
	}
	n = 1 << 40
	if got := n.next(); got != restartPauseMax {
		t.Errorf("after many failures: %v", got)
	}
}
