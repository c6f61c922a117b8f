package task

import (
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/record"
)

// The valve moves exactly when the minimum over the open and active channels
// does, and says it is idle exactly when all open ones are.
func TestValveAgainstRecomputing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "channels")
		v := newValve(n)
		marks, active, open := make([]int64, n), make([]bool, n), make([]bool, n)
		for i := range marks {
			marks[i], active[i], open[i] = record.MinWatermark, true, true
		}
		sent, wasIdle := record.MinWatermark, false
		channel := rapid.IntRange(0, n-1)
		check := func(t *rapid.T, got int64, ok, changed bool) {
			least, isOpen, isActive := record.MaxWatermark, false, false
			for i := range marks {
				isOpen = isOpen || open[i]
				if open[i] && active[i] {
					isActive, least = true, min(least, marks[i])
				}
			}
			moved := (isActive || !isOpen) && least > sent
			if ok != moved || ok && got != least {
				t.Fatalf("watermark %d, moved: %v; want %d, %v", got, ok, least, moved)
			}
			if moved {
				sent = least
			}
			idle := isOpen && !isActive
			if changed != (idle != wasIdle) || v.idle != idle {
				t.Fatalf("idle: %v, changed: %v; want %v, before %v", v.idle, changed, idle, wasIdle)
			}
			wasIdle = idle
		}
		t.Repeat(map[string]func(*rapid.T){
			"watermark": func(t *rapid.T) {
				ch, w := channel.Draw(t, "channel"), rapid.Int64Range(0, 50).Draw(t, "watermark")
				if !open[ch] {
					t.Skip("ended")
				}
				marks[ch] = max(marks[ch], w)
				got, ok := v.watermark(ch, w)
				check(t, got, ok, false)
			},
			"status": func(t *rapid.T) {
				ch, a := channel.Draw(t, "channel"), rapid.Bool().Draw(t, "active")
				if !open[ch] {
					t.Skip("ended")
				}
				active[ch] = a
				got, ok, changed := v.status(ch, a)
				check(t, got, ok, changed)
			},
			"end": func(t *rapid.T) {
				ch := channel.Draw(t, "channel")
				open[ch] = false
				got, ok, changed := v.close(ch)
				check(t, got, ok, changed)
			},
		})
	})
}

// An input that woke up behind its watermark stood still for ever: the
// watermark that came while it was idle did not count, and the next one was
// taken for one that changes nothing.
//
// Mutation: valve.status does not combine when the channel becomes active.
func TestValveAfterIdleness(t *testing.T) {
	v := newValve(1)
	v.watermark(0, 10)
	v.status(0, false)
	v.watermark(0, 20)
	if w, ok, changed := v.status(0, true); w != 20 || !ok || !changed {
		t.Errorf("awake: watermark %d, %v, changed %v; want 20", w, ok, changed)
	}
	if w, ok := v.watermark(0, 30); w != 30 || !ok {
		t.Errorf("watermark %d, %v; want 30", w, ok)
	}
}
