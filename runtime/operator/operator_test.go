package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// event is one input of an operator: a record or, behind it, a watermark.
type event struct {
	input int
	r     record.Record
}

// text renders all that identifies a record.
func text(r *record.Record) string {
	return fmt.Sprintf("s%d c%d n%d k%d v%d f%d t%d %q", r.Source, r.Copy, r.Number, r.Key, r.Value, r.Flags, r.Time, r.Data)
}

func texts(recs []record.Record) []string {
	out := make([]string, len(recs))
	for i := range recs {
		out[i] = text(&recs[i])
	}
	slices.Sort(out)
	return out
}

// models say plainly what each operator puts out for all of its input.
var models = map[string]func(p Params, in []event) []record.Record{
	"map":    func(_ Params, in []event) []record.Record { return records(in) },
	"co-map": func(_ Params, in []event) []record.Record { return records(in) },
	"filter": func(p Params, in []event) (out []record.Record) {
		for _, e := range in {
			if float64(record.Mix(e.r.Number)>>11)/(1<<53) < p.Keep {
				out = append(out, e.r)
			}
		}
		return out
	},
	"flat-map": func(p Params, in []event) (out []record.Record) {
		for _, e := range in {
			for i := range p.FanOut {
				r := e.r
				r.Copy = r.Copy*uint32(p.FanOut) + uint32(i)
				out = append(out, r)
			}
		}
		return out
	},
	"split-words": func(_ Params, in []event) (out []record.Record) {
		for _, e := range in {
			line, at := string(e.r.Data), 0
			for _, w := range strings.FieldsFunc(line, func(c rune) bool { return strings.ContainsRune(" .,-", c) }) {
				at += strings.Index(line[at:], w)
				r := e.r
				r.Data, r.Key, r.Value, r.Number = []byte(w), HashText([]byte(w)), 1, e.r.Number+uint64(at)
				out = append(out, r)
				at += len(w)
			}
		}
		return out
	},
	"keyed-sum":    func(_ Params, in []event) []record.Record { return running(in, func(v int64) int64 { return v }) },
	"count-by-key": func(_ Params, in []event) []record.Record { return running(in, func(int64) int64 { return 1 }) },
	"window-sum": func(p Params, in []event) (out []record.Record) {
		sums := map[[2]uint64]int64{}
		for _, e := range in {
			sums[[2]uint64{e.r.Key, uint64(e.r.Time / p.Size)}] += e.r.Value
		}
		for k, v := range sums {
			out = append(out, record.Record{Key: k[0], Number: k[1], Value: v, Time: int64(k[1]+1)*p.Size - 1, Source: p.Source, Flags: record.FlagAggregate})
		}
		return out
	},
	"join": func(_ Params, in []event) (out []record.Record) {
		for i, b := range in {
			for _, a := range in[:i] {
				if a.input != b.input && a.r.Key == b.r.Key && a.r.Number == b.r.Number {
					r, left := b.r, a.r
					if b.input == 0 {
						left = b.r
					}
					r.Source, r.Copy, r.Value = left.Source, left.Copy, a.r.Value+b.r.Value
					out = append(out, r)
				}
			}
		}
		return out
	},
}

func records(in []event) (out []record.Record) {
	for _, e := range in {
		out = append(out, e.r)
	}
	return out
}

func running(in []event, of func(int64) int64) (out []record.Record) {
	sums := map[uint64]int64{}
	for _, e := range in {
		r := e.r
		sums[r.Key] += of(r.Value)
		r.Value = sums[r.Key]
		out = append(out, r)
	}
	return out
}

// Each operator puts out what its model does, however often it is snapshot and
// restored with another parallelism on the way.
func TestOperatorsAgreeWithModelsThroughRescales(t *testing.T) {
	for name, model := range models {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := Params{
					Keep:   rapid.SampledFrom([]float64{0.01, 0.5, 0.99, 1}).Draw(t, "keep"),
					FanOut: rapid.IntRange(0, 3).Draw(t, "fan-out"), Size: rapid.Int64Range(1, 20).Draw(t, "size"),
					StateSize: rapid.SampledFrom([]int{0, 1, 8, 21}).Draw(t, "state size"), Source: 7,
				}
				g := start(t, name, p, rapid.IntRange(1, 4).Draw(t, "parallelism"))
				var in []event
				twins := map[[3]uint64]bool{}
				for i := range rapid.IntRange(0, 60).Draw(t, "records") {
					if rapid.IntRange(0, 9).Draw(t, "rescale") == 0 {
						g.rescale(rapid.IntRange(1, 5).Draw(t, "to"))
					}
					e := event{r: record.Record{
						Key: rapid.Uint64Range(0, 5).Draw(t, "key"), Number: uint64(i), Time: int64(i + rapid.IntRange(0, 9).Draw(t, "ahead")),
						Value: rapid.Int64Range(0, 99).Draw(t, "value"), Copy: rapid.Uint32Range(0, 2).Draw(t, "copy"), Source: 3,
					}}
					switch name {
					case "join":
						e.input = rapid.IntRange(0, 1).Draw(t, "input")
						e.r.Number = rapid.Uint64Range(0, 3).Draw(t, "number")
						id := [3]uint64{uint64(e.input), e.r.Key, e.r.Number}
						if twins[id] {
							continue
						}
						twins[id] = true
					case "co-map":
						e.input = rapid.IntRange(0, 1).Draw(t, "input")
					case "split-words":
						e.r.Data = []byte(rapid.StringOfN(rapid.SampledFrom([]rune("ab_9Zé .,-")), 0, 12, -1).Draw(t, "line"))
						e.r.Number = uint64(i) << 16
					}
					in = append(in, e)
					if err := g.send(e.input, e.r); err != nil {
						t.Fatal(err)
					}
					if rapid.IntRange(0, 4).Draw(t, "watermark") == 0 {
						g.watermark(int64(i)) // what is to come is later
					}
				}
				g.watermark(record.MaxWatermark)
				g.watermark(record.MaxWatermark) // timers fire once
				got, want := texts(g.out.recs), texts(model(p, in))
				if !slices.Equal(got, want) {
					t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				g.close()
			})
		})
	}
}

func TestKeyedStateIsGoneWhenItsWindowOrPairIsOut(t *testing.T) {
	g := start(t, "window-sum", Params{Size: 10}, 1)
	for i := range 30 {
		if err := g.send(0, record.Record{Key: uint64(i % 3), Time: int64(i), Value: 1}); err != nil {
			t.Fatal(err)
		}
	}
	g.watermark(8)
	if len(g.out.recs) != 0 {
		t.Errorf("%d windows fired before their end", len(g.out.recs))
	}
	g.watermark(9)
	if len(g.out.recs) != 3 {
		t.Errorf("%d windows fired at their end, want 3", len(g.out.recs))
	}
	g.watermark(record.MaxWatermark)
	if n := g.ctx[0].Keyed.Bytes(); n != 0 || len(g.out.recs) != 9 {
		t.Errorf("%d bytes are left, %d windows fired", n, len(g.out.recs))
	}
	if !slices.Equal(g.out.watermarks, []int64{8, 9, record.MaxWatermark}) {
		t.Errorf("passed on %v", g.out.watermarks)
	}
	g = start(t, "join", Params{StateSize: 9}, 1)
	for _, in := range []int{1, 0} {
		if err := g.send(in, record.Record{Key: 1, Number: 2}); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.ctx[0].Keyed.Bytes(); n != 0 {
		t.Errorf("%d bytes of a pair are left", n)
	}
}

func TestJoinRefusesTwins(t *testing.T) {
	for _, in := range []int{0, 1} {
		g := start(t, "join", Params{}, 1)
		r := record.Record{Key: 4, Number: 5}
		if err := g.send(in, r); err != nil {
			t.Fatal(err)
		}
		err := g.send(in, r)
		if want := fmt.Sprintf("input %d has key 4, number 5 twice", in+1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDamagedPatternOfRestoredStateIsDetected(t *testing.T) {
	for _, c := range []struct {
		op, table string
		width     int
	}{{"keyed-sum", "sum", 8}, {"count-by-key", "sum", 8}, {"window-sum", "window", 8}, {"join", "waiting", joinWidth}} {
		p := Params{StateSize: 20, Size: 5}
		g := start(t, c.op, p, 2)
		for k := range uint64(10) {
			if err := g.send(0, record.Record{Key: k, Number: k}); err != nil {
				t.Fatal(err)
			}
		}
		s := g.snapshot(1)
		if err := g.open(3, s); err != nil {
			t.Errorf("%s: good state is refused: %v", c.op, err)
		}
		tab, err := g.ctx[0].Keyed.Table(c.table, c.width+p.StateSize)
		if err != nil {
			t.Fatal(err)
		}
		damaged := false
		tab.Range(func(group int, key, ns uint64, _ []byte) bool {
			v, _ := tab.Upsert(group, key, ns)
			v[len(v)-1] ^= 1
			damaged = true
			return false
		})
		if !damaged {
			t.Fatal("nothing to damage")
		}
		if err := g.open(2, g.snapshot(2)); err == nil || !strings.Contains(err.Error(), "restored damaged") {
			t.Errorf("%s: %v", c.op, err)
		}
	}
}

func TestBroadcastRecordIsPassedOnByOneSubtask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := start(t, "broadcast-map", Params{}, rapid.IntRange(1, 5).Draw(t, "parallelism"))
		var want []record.Record
		var sum, seen uint64
		for i := range rapid.IntRange(0, 40).Draw(t, "records") {
			if rapid.IntRange(0, 9).Draw(t, "rescale") == 0 {
				g.rescale(rapid.IntRange(1, 5).Draw(t, "to"))
			}
			r := record.Record{Key: uint64(i % 3), Number: uint64(i), Source: 1}
			want = append(want, r)
			if rapid.Bool().Draw(t, "broadcast") {
				seen++
				sum += record.Mix(r.Number)
				for _, op := range g.ops {
					k := r
					if err := op.Process(1, &k); err != nil {
						t.Fatal(err)
					}
				}
			} else if err := g.send(0, r); err != nil {
				t.Fatal(err)
			}
		}
		if got := texts(g.out.recs); !slices.Equal(got, texts(want)) {
			t.Fatalf("got %v", got)
		}
		for _, op := range g.ops {
			if o := op.(*broadcastMap); o.seen != seen || o.sum != sum {
				t.Fatalf("subtask %d knows %d records, sum %d; want %d, %d", o.c.Subtask, o.seen, o.sum, seen, sum)
			}
		}
	})
}

func TestMalformedBroadcastStateIsAnError(t *testing.T) {
	c := newContext(0, 1, nowhere{})
	l, err := c.Lists.Get("broadcast", state.Broadcast)
	if err != nil {
		t.Fatal(err)
	}
	l.Items = [][]byte{{1, 2, 3}}
	if err := mustNew(t, "broadcast-map", Params{}).Open(c); err == nil || !strings.Contains(err.Error(), "3 bytes") {
		t.Error(err)
	}
}

func TestCostOfWaitingHasItsMean(t *testing.T) {
	for _, per := range []time.Duration{time.Microsecond, 300 * time.Microsecond, 1500 * time.Microsecond, 40 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			op := mustNew(t, "map", Params{Cost: int64(per)})
			c := newContext(0, 1, nowhere{})
			if err := op.Open(c); err != nil {
				t.Fatal(err)
			}
			const n = 5000
			run := func() time.Duration {
				start := time.Now()
				for range n {
					if err := op.Process(0, &record.Record{}); err != nil {
						t.Fatal(err)
					}
				}
				return time.Since(start)
			}
			if d := run(); d < n*per-slice || d > n*per+slice {
				t.Errorf("%d records at %v took %v", n, per, d)
			}
			c.Uncharged.Store(true)
			if d := run(); d != 0 {
				t.Errorf("uncharged records took %v", d)
			}
		})
	}
}

func TestLongCostEndsWhenTheTaskIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := mustNew(t, "map", Params{Cost: int64(time.Hour)})
		c := newContext(0, 1, nowhere{})
		stop := make(chan struct{})
		c.Stop = stop
		if err := op.Open(c); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		time.AfterFunc(time.Second, func() { close(stop) })
		if err := op.Process(0, &record.Record{}); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d != time.Second {
			t.Errorf("took %v", d)
		}
	})
}

func TestBurningCostTakesItsTime(t *testing.T) {
	op := mustNew(t, "discard", Params{Cost: int64(200 * time.Microsecond), Burn: true})
	if err := op.Open(newContext(0, 1, nowhere{})); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for range 10 {
		if err := op.Process(0, &record.Record{}); err != nil {
			t.Fatal(err)
		}
	}
	if d := time.Since(start); d < 2*time.Millisecond {
		t.Errorf("10 records of 200µs took %v", d)
	}
}

func TestProcessDoesNotAllocate(t *testing.T) {
	for _, name := range []string{"keyed-sum", "count-by-key", "discard", "map", "co-map", "filter", "flat-map"} {
		op := mustNew(t, name, Params{Keep: 0.5, FanOut: 2, StateSize: 16})
		if err := op.Open(newContext(0, 1, nowhere{})); err != nil {
			t.Fatal(err)
		}
		r := record.Record{Value: 1}
		process := func() {
			r.Key = (r.Key + 1) % 64
			r.Number++
			if err := op.Process(0, &r); err != nil {
				t.Fatal(err)
			}
		}
		for range 64 {
			process()
		}
		if n := testing.AllocsPerRun(200, process); n != 0 {
			t.Errorf("%s: %v allocations a record", name, n)
		}
	}
}

func TestUnknownOperatorNamesTheLibrary(t *testing.T) {
	if _, err := New("mpa", nil); err == nil || !strings.Contains(err.Error(), "keyed-sum, map,") {
		t.Error(err)
	}
	if _, err := New("map", []byte("{")); err == nil || !strings.Contains(err.Error(), `"map"`) {
		t.Error(err)
	}
	g := &group{t: t, name: "window-sum", out: &collector{}}
	if err := g.open(1, nil); err == nil || !strings.Contains(err.Error(), "window of 0 ms") {
		t.Error(err)
	}
}
