package exchange

import (
	"testing"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"

	"pgregory.net/rapid"
)

// The ring behaves as a slice does.
func TestDequeAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q deque
		var model []buffer.Buffer
		prio, next := 0, byte(0)
		event := func() buffer.Buffer {
			next++
			return buffer.Buffer{Event: &record.Event{Checkpoint: int64(next)}}
		}
		t.Repeat(map[string]func(*rapid.T){
			"data": func(*rapid.T) {
				next++
				b := buffer.Buffer{Data: []byte{next}}
				q.push(b)
				model = append(model, b)
			},
			"event": func(*rapid.T) {
				b := event()
				q.push(b)
				model = append(model, b)
			},
			"priority": func(*rapid.T) {
				b := event()
				q.pushPriority(b)
				model = append(model[:prio:prio], append([]buffer.Buffer{b}, model[prio:]...)...)
				prio++
			},
			"burst": func(*rapid.T) { // beyond the size at which an empty ring gives up its memory
				for range 70 {
					b := event()
					q.push(b)
					model = append(model, b)
				}
			},
			"pop": func(t *rapid.T) {
				n := rapid.IntRange(0, 80).Draw(t, "n")
				for ; n > 0 && len(model) > 0; n-- {
					if got := q.pop(); !same(got, model[0]) {
						t.Fatalf("popped %v, want %v", got, model[0])
					}
					model = model[1:]
					prio = max(0, prio-1)
				}
			},
			"remove": func(t *rapid.T) {
				if len(model) == prio {
					t.Skip("nothing that is no priority event")
				}
				i := rapid.IntRange(prio, len(model)-1).Draw(t, "i")
				if got := q.remove(i); !same(got, model[i]) {
					t.Fatalf("removed %v, want %v", got, model[i])
				}
				model = append(model[:i:i], model[i+1:]...)
			},
			"": func(t *rapid.T) {
				data := 0
				for i := range model {
					if !same(*q.at(i), model[i]) {
						t.Fatalf("element %d is %v, want %v", i, *q.at(i), model[i])
					}
					if model[i].IsData() {
						data++
					}
				}
				if q.n != len(model) || q.prio != prio || q.data != data {
					t.Fatalf("%d elements, %d urgent, %d of data; want %d, %d, %d", q.n, q.prio, q.data, len(model), prio, data)
				}
			},
		})
	})
}

func same(a, b buffer.Buffer) bool {
	return a.Event == b.Event && len(a.Data) == len(b.Data) && (len(a.Data) == 0 || a.Data[0] == b.Data[0])
}
