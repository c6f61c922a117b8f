package task

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"benchrun/runtime/record"
)

// script is the task as the barrier handler sees it: it writes down what it is
// told to do.
type script struct {
	did []string
}

func (s *script) say(format string, a ...any) { s.did = append(s.did, fmt.Sprintf(format, a...)) }

func (s *script) startCapture(id int64) { s.say("start capture %d", id) }
func (s *script) trigger(ev *record.Event, unaligned bool) error {
	s.say("trigger %d unaligned=%v", ev.Checkpoint, unaligned)
	return nil
}
func (s *script) captured(id int64)               { s.say("captured %d", id) }
func (s *script) aborted(id int64, reason string) { s.say("aborted %d %s", id, reason) }
func (s *script) resume(ch int)                   { s.say("resume %d", ch) }
func (s *script) convert(ch int, id int64)        { s.say("convert %d of %d", id, ch) }
func (s *script) arm(id int64, at time.Time)      { s.say("arm %d at %v", id, at.Sub(time.Unix(0, 0))) }

// event builds a barrier or announcement as it would arrive.
func event(id int64, kind record.BarrierKind) record.Event {
	ev := record.Event{Kind: record.Barrier, Barrier: kind, Checkpoint: id}
	switch kind {
	case record.Unaligned, record.ForcedAligned:
		ev.Options.Unaligned = true
	case record.AlignedWithTimeout:
		ev.Options.Unaligned, ev.Options.Timeout = true, time.Second
	}
	return ev
}

// TestBarriers runs testdata/barriers: the rules BH-1 to BH-13 and the rows of
// the table of states, each as a script.
//
//	new channels=N
//	barrier CHANNEL ID aligned|unaligned|timeout|forced|converted
//	announce CHANNEL ID   timeout ID   end CHANNEL   cancel ID
func TestBarriers(t *testing.T) {
	kinds := map[string]record.BarrierKind{"aligned": record.Aligned, "unaligned": record.Unaligned, "timeout": record.AlignedWithTimeout, "forced": record.ForcedAligned, "converted": record.Unaligned}
	datadriven.Walk(t, "testdata/barriers", func(t *testing.T, path string) {
		var s *script
		var b *barriers
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "new" {
				var n int
				d.ScanArgs(t, "channels", &n)
				s = &script{}
				b = newBarriers(n, s)
				return "ok\n"
			}
			arg := func(i int) (n int64) {
				fmt.Sscan(d.CmdArgs[i].Key, &n)
				return n
			}
			s.did = nil
			switch d.Cmd {
			case "barrier":
				ev := event(arg(1), kinds[d.CmdArgs[2].Key])
				if d.CmdArgs[2].Key == "converted" {
					ev.Sequence = 1
				}
				b.barrier(int(arg(0)), &ev)
			case "announce":
				ev := event(arg(1), record.AlignedWithTimeout)
				ev.Kind = record.Announcement
				b.announcement(int(arg(0)), &ev)
			case "timeout":
				b.timeout(arg(0))
			case "end":
				b.ended(int(arg(0)))
			case "cancel":
				b.cancel(arg(0))
			default:
				d.Fatalf(t, "unknown command")
			}
			if len(s.did) == 0 {
				return "nothing\n"
			}
			return strings.Join(s.did, "\n") + "\n"
		})
	})
}

// model checks what the handler does against what must hold whatever comes.
type model struct {
	t         *rapid.T
	blocked   map[int]int // channel -> producers that wait to be resumed
	open      int64       // checkpoint being captured; 0: none
	triggered map[int64]int
	over      map[int64]string
}

func (m *model) startCapture(id int64) {
	if m.open != 0 {
		m.t.Fatalf("capture of %d begins while %d is captured", id, m.open)
	}
	m.open = id
}

func (m *model) trigger(ev *record.Event, unaligned bool) error {
	id := ev.Checkpoint
	if unaligned != (m.open == id) {
		m.t.Fatalf("checkpoint %d triggered unaligned=%v while %d is captured", id, unaligned, m.open)
	}
	if m.triggered[id]++; m.triggered[id] > 1 {
		m.t.Fatalf("checkpoint %d triggered twice", id)
	}
	if m.over[id] != "" {
		m.t.Fatalf("checkpoint %d triggered after it was %s", id, m.over[id])
	}
	if !unaligned {
		m.over[id] = "complete"
	}
	return nil
}

func (m *model) captured(id int64) {
	if m.open != id {
		m.t.Fatalf("checkpoint %d captured, but %d was begun", id, m.open)
	}
	m.open, m.over[id] = 0, "complete"
}

func (m *model) aborted(id int64, _ string) {
	if m.over[id] != "" {
		m.t.Fatalf("checkpoint %d aborted after it was %s", id, m.over[id])
	}
	if m.open == id {
		m.open = 0
	}
	m.over[id] = "aborted"
}

func (m *model) resume(ch int) {
	if m.blocked[ch] == 0 {
		m.t.Fatalf("channel %d resumed, but its producer does not wait", ch)
	}
	m.blocked[ch]--
}

func (m *model) convert(ch int, id int64) {
	if m.open != id {
		m.t.Fatalf("barrier of %d converted on %d outside of its capture", id, ch)
	}
}

func (m *model) arm(int64, time.Time) {}

// TestBarriersRandomOrders delivers barriers of some checkpoints on some
// channels in any order that channels allow, with cancellations, time-outs and
// ends in between.
func TestBarriersRandomOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "channels")
		m := &model{t: t, blocked: map[int]int{}, triggered: map[int64]int{}, over: map[int64]string{}}
		b := newBarriers(n, m)
		kind := rapid.SampledFrom([]record.BarrierKind{record.Aligned, record.Unaligned, record.AlignedWithTimeout, record.ForcedAligned}).Draw(t, "kind")
		last := int64(rapid.IntRange(1, 5).Draw(t, "checkpoints"))
		next := make([]int64, n) // next checkpoint of each channel
		ended := make([]bool, n)
		for i := range next {
			next[i] = 1
		}
		for steps := 0; steps < 60; steps++ {
			ch := rapid.IntRange(0, n-1).Draw(t, "channel")
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			default:
				if ended[ch] || next[ch] > last || m.blocked[ch] > 0 {
					continue // a blocked producer sends nothing
				}
				if rapid.IntRange(0, 5).Draw(t, "skip") == 0 {
					next[ch]++ // this producer never took part
					continue
				}
				ev := event(next[ch], kind)
				if kind == record.AlignedWithTimeout && rapid.Bool().Draw(t, "converted") {
					ev.Barrier, ev.Sequence = record.Unaligned, 1
				}
				next[ch]++
				if producerBlocked(&ev) {
					m.blocked[ch]++
				}
				b.barrier(ch, &ev)
			case 0:
				b.cancel(rapid.Int64Range(0, last).Draw(t, "cancel"))
			case 1:
				if !ended[ch] && m.blocked[ch] == 0 {
					ended[ch] = true
					b.ended(ch)
				}
			case 2:
				if kind == record.AlignedWithTimeout {
					b.timeout(b.current)
				}
			case 3:
				if kind == record.AlignedWithTimeout && !ended[ch] && next[ch] <= last && m.blocked[ch] == 0 {
					ev := event(next[ch], kind)
					ev.Kind = record.Announcement
					b.announcement(ch, &ev)
				}
			}
		}
		b.cancel(last)
		for ch, k := range m.blocked {
			if k > 0 {
				t.Fatalf("channel %d is still blocked", ch)
			}
		}
		if m.open != 0 {
			t.Fatalf("checkpoint %d is still captured", m.open)
		}
		var ids []int64
		for id := range m.triggered {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		for _, id := range ids {
			if m.over[id] == "" {
				t.Fatalf("checkpoint %d was triggered and never ended", id)
			}
		}
	})
}

// TestValve compares the combined watermark with the minimum over the channels
// that are active and open, recomputed each time.
func TestValve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "channels")
		v := newValve(n)
		marks, active, open := make([]int64, n), make([]bool, n), make([]bool, n)
		for i := range marks {
			marks[i], active[i], open[i] = record.MinWatermark, true, true
		}
		sent := record.MinWatermark
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			ch := rapid.IntRange(0, n-1).Draw(t, "channel")
			var got int64
			var ok bool
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			default:
				w := rapid.Int64Range(0, 50).Draw(t, "watermark")
				marks[ch] = max(marks[ch], w)
				got, ok = v.watermark(ch, w)
			case 0:
				active[ch] = rapid.Bool().Draw(t, "active")
				got, ok, _ = v.status(ch, active[ch])
			case 1:
				open[ch] = false
				got, ok, _ = v.close(ch)
			}
			if ok {
				if got <= sent {
					t.Fatalf("watermark %d after %d", got, sent)
				}
				sent = got
			}
			for i := range marks {
				if active[i] && open[i] && marks[i] < sent && ok {
					t.Fatalf("watermark %d is ahead of channel %d, which stands at %d", sent, i, marks[i])
				}
			}
		}
	})
}

// TestMailboxDropsAreTold: a mail that nobody comes to run says so
// (FLINK-23741: a trigger for a task that has finished must be declined).
// Mutation: mailbox.close without drop.
func TestFLINK23741_DroppedMailIsTold(t *testing.T) {
	m := newMailbox()
	dropped := 0
	m.postOr(func() error { return nil }, func() { dropped++ })
	m.close()
	if dropped != 1 || m.post(func() error { return nil }) {
		t.Errorf("dropped %d mails, want 1, and none accepted after close", dropped)
	}
	m = newMailbox()
	m.post(func() error { return errCanceled })
	m.postOr(func() error { return nil }, func() { dropped++ })
	if err := m.run(); err == nil || dropped != 2 {
		t.Errorf("error %v, dropped %d", err, dropped)
	}
}
