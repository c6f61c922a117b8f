package operator

import (
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// total adds up the reports of all subtasks.
type total struct {
	arrived, distinct int64
	identity          uint64
	finals            map[uint64]int64
	aggregates        map[[2]uint64]int64
	numbers           map[Lane]map[uint64]bool
}

func addUp(t failer, g *group) total {
	t.Helper()
	x := total{finals: map[uint64]int64{}, aggregates: map[[2]uint64]int64{}, numbers: map[Lane]map[uint64]bool{}}
	for _, op := range g.ops {
		rep, err := op.(Reporter).Report()
		if err != nil {
			t.Fatal(err)
		}
		r := rep.(*SinkReport)
		x.arrived += r.Arrived
		x.identity += r.Identity
		for k, v := range r.Finals {
			if old, ok := x.finals[k]; !ok || v > old {
				x.finals[k] = v
			}
		}
		for _, a := range r.Aggregates {
			x.aggregates[[2]uint64{a.Key, a.Number}] = a.Value
		}
		for _, l := range r.Lanes {
			if x.numbers[l.Lane] == nil {
				x.numbers[l.Lane] = map[uint64]bool{}
			}
			for index, p := range l.Pages {
				for n := range uint64(PageBits) {
					if p[n/64]>>(n%64)&1 == 1 {
						x.numbers[l.Lane][index*PageBits+n] = true
					}
				}
			}
		}
	}
	for _, n := range x.numbers {
		x.distinct += int64(len(n))
	}
	x.distinct += int64(len(x.aggregates))
	return x
}

// Whichever subtask a record reaches, how often, and whatever restores lie
// between: every arrival is counted and every identity known.
func TestVerifySinkCountsEveryArrivalThroughRescales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := start(t, "verify-sink", Params{}, rapid.IntRange(1, 4).Draw(t, "parallelism"))
		want := total{finals: map[uint64]int64{}, aggregates: map[[2]uint64]int64{}, numbers: map[Lane]map[uint64]bool{}}
		for range rapid.IntRange(0, 80).Draw(t, "records") {
			if rapid.IntRange(0, 15).Draw(t, "rescale") == 0 {
				g.rescale(rapid.IntRange(1, 5).Draw(t, "to"))
			}
			r := record.Record{
				Number: rapid.OneOf(rapid.Uint64Range(0, 9), rapid.Uint64Range(4090, 4100), rapid.Uint64()).Draw(t, "number"),
				Copy:   rapid.Uint32Range(0, 1).Draw(t, "copy"), Source: rapid.Uint16Range(0, 1).Draw(t, "source"),
				Value: rapid.Int64().Draw(t, "value"),
			}
			r.Key = r.Number % 3
			agg := rapid.IntRange(0, 3).Draw(t, "aggregate") == 0
			if agg {
				r.Flags, r.Value = record.FlagAggregate, int64(r.Number) // its identity decides its value
			}
			if err := g.ops[rapid.IntRange(0, len(g.ops)-1).Draw(t, "subtask")].Process(0, &r); err != nil {
				t.Fatal(err)
			}
			want.arrived++
			want.identity += Identity(&r)
			if agg {
				want.aggregates[[2]uint64{r.Key, r.Number}] = r.Value
				continue
			}
			l := Lane{r.Source, r.Copy}
			if want.numbers[l] == nil {
				want.numbers[l] = map[uint64]bool{}
			}
			want.numbers[l][r.Number] = true
			if old, ok := want.finals[r.Key]; !ok || r.Value > old {
				want.finals[r.Key] = r.Value
			}
		}
		if rapid.Bool().Draw(t, "restored in the end") {
			g.rescale(rapid.IntRange(1, 5).Draw(t, "to"))
		}
		got := addUp(t, g)
		if got.arrived != want.arrived || got.identity != want.identity {
			t.Fatalf("arrived %d, identity %x; want %d, %x", got.arrived, got.identity, want.arrived, want.identity)
		}
		if !maps.Equal(got.finals, want.finals) || !maps.Equal(got.aggregates, want.aggregates) {
			t.Fatalf("finals %v, aggregates %v; want %v, %v", got.finals, got.aggregates, want.finals, want.aggregates)
		}
		if !maps.EqualFunc(got.numbers, want.numbers, maps.Equal[map[uint64]bool, map[uint64]bool]) {
			t.Fatalf("numbers %v, want %v", got.numbers, want.numbers)
		}
	})
}

func TestVerifySinkSeesDuplicatesWithinAndAcrossSubtasks(t *testing.T) {
	for _, second := range []int{0, 1} {
		for _, flags := range []uint8{0, record.FlagAggregate} {
			g := start(t, "verify-sink", Params{}, 2)
			r := record.Record{Number: 5, Key: 6, Value: 7, Flags: flags}
			for _, i := range []int{0, second} {
				if err := g.ops[i].Process(0, &r); err != nil {
					t.Fatal(err)
				}
			}
			if x := addUp(t, g); x.arrived != 2 || x.distinct != 1 || x.identity != 2*Identity(&r) {
				t.Errorf("second at %d, flags %d: %d arrivals of %d identities", second, flags, x.arrived, x.distinct)
			}
		}
	}
}

func TestVerifySinkCountsDisorder(t *testing.T) {
	g := start(t, "verify-sink", Params{}, 1)
	send := func(n uint64) {
		if err := g.ops[0].Process(0, &record.Record{Number: n}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []uint64{0, 1, stripes, stripes + 1, 2, 1} { // stripe 1: 1, 257, 1
		send(n)
	}
	g.rescale(1)
	send(0) // behind 256, also after a restore
	rep, err := g.ops[0].(Reporter).Report()
	if err != nil {
		t.Fatal(err)
	}
	if d := rep.(*SinkReport).Disorder; d != 2 {
		t.Errorf("%d out of order, want 2", d)
	}
}

func TestVerifySinkDetectsDamagedData(t *testing.T) {
	g := start(t, "verify-sink", Params{}, 1)
	r := record.Record{Number: 3, Flags: record.FlagPattern, Data: record.NewPattern(100)}
	record.SetPattern(r.Data, 3)
	if err := g.ops[0].Process(0, &r); err != nil {
		t.Fatal(err)
	}
	r.Data[50] ^= 4
	if err := g.ops[0].Process(0, &r); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Error(err)
	}
}

func TestPagesRoundTripSparseAndDense(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p Page
		set := func(n int) { p[n/64] |= 1 << (n % 64) }
		n := rapid.SampledFrom([]int{0, 1, PageBits/16 - 1, PageBits / 16, PageBits/16 + 1, PageBits}).Draw(t, "bits")
		from, step := rapid.IntRange(0, PageBits-1).Draw(t, "from"), rapid.SampledFrom([]int{1, 3, 2047}).Draw(t, "step")
		for i := range n {
			set((from + i*step) % PageBits)
		}
		want := Lane{rapid.Uint16().Draw(t, "source"), rapid.Uint32().Draw(t, "copy")}
		wantIndex := rapid.Uint64().Draw(t, "index")
		b := appendPage(nil, want, wantIndex, &p)
		if max := 14 + PageBits/8; len(b) > max || n < PageBits/16 && len(b) != 14+2*n {
			t.Fatalf("%d bits take %d bytes", n, len(b))
		}
		id, index, got, err := readPage(b)
		if err != nil || id != want || index != wantIndex || *got != p {
			t.Fatalf("%d bits: %v, %d, %v", n, id, index, err)
		}
	})
}

func FuzzReadPage(f *testing.F) {
	f.Add(appendPage(nil, Lane{1, 2}, 3, &Page{7}))
	f.Add(make([]byte, 14+PageBits/8))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, index, p, err := readPage(b)
		if err != nil {
			return
		}
		id2, index2, p2, err := readPage(appendPage(nil, id, index, p))
		if err != nil || id2 != id || index2 != index || *p2 != *p {
			t.Fatalf("%x does not round trip: %v", b, err)
		}
	})
}

func TestMalformedSinkStateIsAnError(t *testing.T) {
	for _, c := range []struct {
		list string
		item []byte
	}{
		{"seen", nil}, {"seen", make([]byte, 13)}, {"seen", make([]byte, 15)}, {"seen", append(make([]byte, 14), 0xff, 0xff)},
		{"finals", []byte{}}, {"finals", []byte{2}}, {"finals", make([]byte, 10)}, {"finals", append([]byte{1}, make([]byte, 16)...)},
		{"totals", make([]byte, 23)},
	} {
		ctx := newContext(0, 1, nowhere{})
		l, err := ctx.Lists.Get(c.list, state.Split)
		if err != nil {
			t.Fatal(err)
		}
		l.Items = [][]byte{c.item}
		if err := mustNew(t, "verify-sink", Params{}).Open(ctx); err == nil || !strings.Contains(err.Error(), "op: malformed") {
			t.Errorf("%s %x: %v", c.list, c.item, err)
		}
	}
}
