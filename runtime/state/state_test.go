package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

const testGroups = 8

func groupOf(key uint64) int { return int(key * 31 % testGroups) }

type id struct{ key, ns uint64 }

// model is the state as plain maps.
type model struct {
	fixed  map[id]string
	wide   map[id]string
	vars   map[id]string
	timers map[Timer]bool
}

func newModel() *model {
	return &model{map[id]string{}, map[id]string{}, map[id]string{}, map[Timer]bool{}}
}

func (m *model) clone() *model {
	return &model{maps.Clone(m.fixed), maps.Clone(m.wide), maps.Clone(m.vars), maps.Clone(m.timers)}
}

const wideWidth = chunkBytes // one value a chunk

type tables struct {
	fixed, wide *Table
	vars        *VarTable
	timers      *Timers
}

func open(t interface{ Fatal(...any) }, b *Backend) tables {
	fixed, err := b.Table("fixed", 24)
	if err != nil {
		t.Fatal(err)
	}
	wide, err := b.Table("wide", wideWidth)
	if err != nil {
		t.Fatal(err)
	}
	vars, err := b.VarTable("vars")
	if err != nil {
		t.Fatal(err)
	}
	return tables{fixed, wide, vars, b.Timers()}
}

// compare holds backends that together cover all groups against the model.
func compare(t interface {
	Fatalf(string, ...any)
	Fatal(...any)
}, m *model, backends ...*Backend) {
	got := newModel()
	for _, b := range backends {
		ts := open(t, b)
		collect := func(into map[id]string, trim bool) func(int, uint64, uint64, []byte) bool {
			return func(group int, key, ns uint64, val []byte) bool {
				if group != groupOf(key) || group < b.First() || group > b.Last() {
					t.Fatalf("key %d found in group %d of backend %d..%d", key, group, b.First(), b.Last())
				}
				if trim {
					val = val[:8]
				}
				into[id{key, ns}] = string(val)
				return true
			}
		}
		ts.fixed.Range(collect(got.fixed, false))
		ts.wide.Range(collect(got.wide, true))
		ts.vars.Range(collect(got.vars, false))
		n := 0
		ts.timers.Range(func(group int, tm Timer) bool {
			n++
			got.timers[tm] = true
			return true
		})
		if n != ts.timers.Len() {
			t.Fatalf("%d timers are set, Len says %d", n, ts.timers.Len())
		}
	}
	if !maps.Equal(got.fixed, m.fixed) {
		t.Fatalf("fixed: got %d entries, want %d", len(got.fixed), len(m.fixed))
	}
	if !maps.Equal(got.wide, m.wide) {
		t.Fatalf("wide: got %d entries, want %d", len(got.wide), len(m.wide))
	}
	if !maps.Equal(got.vars, m.vars) {
		t.Fatalf("vars: got %v, want %v", got.vars, m.vars)
	}
	if !maps.Equal(got.timers, m.timers) {
		t.Fatalf("timers: got %v, want %v", got.timers, m.timers)
	}
}

// restore reads a written snapshot into backends that split the groups.
func restore(t interface {
	Fatal(...any)
	Fatalf(string, ...any)
}, data []byte, groups []GroupOffset, cuts ...int) []*Backend {
	var bs []*Backend
	first := 0
	for _, last := range append(cuts, testGroups-1) {
		b := NewBackend(first, last)
		if err := b.Restore(bytes.NewReader(data), groups); err != nil {
			t.Fatal(err)
		}
		bs = append(bs, b)
		first = last + 1
	}
	return bs
}

func TestAgainstMaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := NewBackend(0, testGroups-1)
		ts := open(t, b)
		m := newModel()
		type frozen struct {
			snap *Snapshot
			m    *model
		}
		var held []frozen
		watermark := int64(0)
		keys := rapid.Uint64Range(0, 40)
		nss := rapid.Uint64Range(0, 2)
		timer := func() Timer {
			return Timer{rapid.Int64Range(watermark-2, watermark+20).Draw(t, "time"), keys.Draw(t, "key"), nss.Draw(t, "ns")}
		}
		check := func(f frozen) {
			var buf bytes.Buffer
			groups, err := f.snap.Write(&buf)
			if err != nil {
				t.Fatal(err)
			}
			f.snap.Release()
			cut := rapid.IntRange(0, testGroups-2).Draw(t, "cut")
			compare(t, f.m, restore(t, buf.Bytes(), groups, cut)...)
		}
		t.Repeat(map[string]func(*rapid.T){
			"upsert": func(t *rapid.T) {
				key, ns := keys.Draw(t, "key"), nss.Draw(t, "ns")
				val, fresh := ts.fixed.Upsert(groupOf(key), key, ns)
				old, was := m.fixed[id{key, ns}]
				if fresh == was {
					t.Fatalf("fresh = %t, was there = %t", fresh, was)
				}
				if fresh {
					old = string(make([]byte, 24))
				}
				if string(val) != old {
					t.Fatalf("value %x, want %x", val, old)
				}
				binary.LittleEndian.PutUint64(val[8:], rapid.Uint64().Draw(t, "value"))
				m.fixed[id{key, ns}] = string(val)
			},
			"upsert wide": func(t *rapid.T) {
				key := rapid.Uint64Range(0, 6).Draw(t, "key")
				val, _ := ts.wide.Upsert(groupOf(key), key, 0)
				binary.LittleEndian.PutUint64(val, rapid.Uint64().Draw(t, "value"))
				m.wide[id{key, 0}] = string(val[:8])
			},
			"delete": func(t *rapid.T) {
				key, ns := keys.Draw(t, "key"), nss.Draw(t, "ns")
				_, was := m.fixed[id{key, ns}]
				if ts.fixed.Delete(groupOf(key), key, ns) != was {
					t.Fatalf("delete of %d: was there = %t", key, was)
				}
				delete(m.fixed, id{key, ns})
				ts.wide.Delete(groupOf(key), key, 0)
				delete(m.wide, id{key, 0})
				_, was = m.vars[id{key, ns}]
				if ts.vars.Delete(groupOf(key), key, ns) != was {
					t.Fatalf("delete of var %d: was there = %t", key, was)
				}
				delete(m.vars, id{key, ns})
			},
			"get": func(t *rapid.T) {
				key, ns := keys.Draw(t, "key"), nss.Draw(t, "ns")
				want, was := m.fixed[id{key, ns}]
				got := ts.fixed.Get(groupOf(key), key, ns)
				if (got != nil) != was || string(got) != want {
					t.Fatalf("get: %x, want %x", got, want)
				}
			},
			"put": func(t *rapid.T) {
				key, ns := keys.Draw(t, "key"), nss.Draw(t, "ns")
				val := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "value")
				ts.vars.Put(groupOf(key), key, ns, val)
				m.vars[id{key, ns}] = string(val)
			},
			"append": func(t *rapid.T) {
				key, ns := keys.Draw(t, "key"), nss.Draw(t, "ns")
				val := rapid.SliceOfN(rapid.Byte(), 0, 9).Draw(t, "value")
				ts.vars.Append(groupOf(key), key, ns, val)
				m.vars[id{key, ns}] += string(val)
			},
			"sweep": func(t *rapid.T) {
				bit := rapid.Uint64Range(0, 7).Draw(t, "bit")
				ts.fixed.Range(func(group int, key, ns uint64, val []byte) bool {
					if key&7 == bit {
						ts.fixed.Delete(group, key, ns)
						delete(m.fixed, id{key, ns})
					}
					return true
				})
			},
			"register": func(t *rapid.T) {
				tm := timer()
				if ts.timers.Register(groupOf(tm.Key), tm) == m.timers[tm] {
					t.Fatalf("register of %v: was set = %t", tm, m.timers[tm])
				}
				m.timers[tm] = true
			},
			"unset": func(t *rapid.T) {
				tm := timer()
				if ts.timers.Delete(groupOf(tm.Key), tm) != m.timers[tm] {
					t.Fatalf("delete of %v: was set = %t", tm, m.timers[tm])
				}
				delete(m.timers, tm)
			},
			"advance": func(t *rapid.T) {
				watermark += rapid.Int64Range(0, 10).Draw(t, "by")
				last := int64(math.MinInt64)
				err := ts.timers.Advance(watermark, func(group int, tm Timer) error {
					if group != groupOf(tm.Key) || !m.timers[tm] || tm.Time < last || tm.Time > watermark {
						t.Fatalf("timer %v of group %d fired at %d after one at %d", tm, group, watermark, last)
					}
					last = tm.Time
					delete(m.timers, tm)
					if tm.NS == 1 { // a timer that sets the next
						next := Timer{tm.Time + 3, tm.Key, 2}
						if ts.timers.Register(group, next) {
							m.timers[next] = true
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				next := int64(math.MaxInt64)
				for tm := range m.timers {
					next = min(next, tm.Time)
				}
				if ts.timers.Next() != next || next <= watermark {
					t.Fatalf("next timer at %d, want %d; watermark %d", ts.timers.Next(), next, watermark)
				}
			},
			"snapshot": func(t *rapid.T) {
				held = append(held, frozen{b.Snapshot(), m.clone()})
			},
			"write": func(t *rapid.T) {
				if len(held) == 0 {
					t.Skip("no snapshot")
				}
				i := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				check(held[i])
				held = slices.Delete(held, i, i+1)
			},
			"": func(t *rapid.T) {
				compare(t, m, b)
			},
		})
		for _, f := range held {
			check(f)
		}
	})
}

// A snapshot is written while the owner goes on; the race detector sees any
// byte that both touch.
func TestSnapshotWhileOwnerMutates(t *testing.T) {
	b := NewBackend(0, testGroups-1)
	ts := open(t, b)
	m := newModel()
	mutate := func(round uint64) {
		for key := uint64(0); key < 3000; key++ {
			val, _ := ts.fixed.Upsert(groupOf(key), key, round%3)
			binary.LittleEndian.PutUint64(val, key*round)
			if m != nil {
				m.fixed[id{key, round % 3}] = string(val)
			}
			if key%7 == round%7 && ts.fixed.Delete(groupOf(key), key, 1) && m != nil {
				delete(m.fixed, id{key, 1})
			}
			ts.vars.Append(groupOf(key), key%50, 0, []byte{byte(round)})
			ts.timers.Register(groupOf(key), Timer{int64(key % 100 * round), key, round})
		}
		ts.timers.Advance(int64(50*round), func(int, Timer) error { return nil })
	}
	ts.vars = mustVar(t, b, "scratch") // not compared: the model has no such table
	for round := uint64(1); round < 12; round++ {
		mutate(round)
		m.timers = map[Timer]bool{}
		ts.timers.Range(func(_ int, tm Timer) bool { m.timers[tm] = true; return true })
		want := m.clone()
		snap := b.Snapshot()
		var (
			wg     sync.WaitGroup
			buf    bytes.Buffer
			groups []GroupOffset
			err    error
		)
		wg.Go(func() { groups, err = snap.Write(&buf); snap.Release() })
		m = nil
		mutate(round + 1)
		mutate(round + 2)
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		bs := restore(t, buf.Bytes(), groups, 2)
		compare(t, want, bs...)
		// Go on from the restored state, whole.
		b = NewBackend(0, testGroups-1)
		if err := b.Restore(bytes.NewReader(buf.Bytes()), groups); err != nil {
			t.Fatal(err)
		}
		ts = open(t, b)
		ts.vars = mustVar(t, b, "scratch")
		m = want
	}
}

func mustVar(t *testing.T, b *Backend, name string) *VarTable {
	v, err := b.VarTable(name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Restoring from the snapshots of two subtasks into one (scale down).
func TestRestoreFromSeveral(t *testing.T) {
	m := newModel()
	whole := NewBackend(0, testGroups-1)
	for _, r := range [][2]int{{0, 4}, {5, 7}} {
		b := NewBackend(r[0], r[1])
		ts := open(t, b)
		for key := uint64(0); key < 100; key++ {
			if g := groupOf(key); g >= r[0] && g <= r[1] {
				val, _ := ts.fixed.Upsert(g, key, 7)
				val[0] = byte(key)
				m.fixed[id{key, 7}] = string(val)
				ts.timers.Register(g, Timer{int64(key), key, 0})
				m.timers[Timer{int64(key), key, 0}] = true
			}
		}
		var buf bytes.Buffer
		groups, err := b.Snapshot().Write(&buf)
		if err != nil {
			t.Fatal(err)
		}
		if err := whole.Restore(bytes.NewReader(buf.Bytes()), groups); err != nil {
			t.Fatal(err)
		}
		if err := whole.Restore(bytes.NewReader(buf.Bytes()), groups); err == nil {
			t.Fatal("the same groups were restored twice")
		}
	}
	compare(t, m, whole)
}

func TestLargeValuesAndBytes(t *testing.T) {
	b := NewBackend(3, 3)
	const width = 3 << 20
	tab, err := b.Table("big", width)
	if err != nil {
		t.Fatal(err)
	}
	for key := uint64(0); key < 5; key++ {
		val, _ := tab.Upsert(3, key, 0)
		val[0], val[width-1] = byte(key), byte(key)
	}
	if got, want := b.Bytes(), int64(5*(width+16)); got != want {
		t.Errorf("Bytes = %d, want %d", got, want)
	}
	var buf bytes.Buffer
	groups, err := b.Snapshot().Write(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if over := int64(buf.Len()) - b.Bytes(); over > 100 {
		t.Errorf("the snapshot has %d bytes more than the state", over)
	}
	b = NewBackend(0, 7)
	if err := b.Restore(bytes.NewReader(buf.Bytes()), groups); err != nil {
		t.Fatal(err)
	}
	tab, _ = b.Table("big", width)
	for key := uint64(0); key < 5; key++ {
		if val := tab.Get(3, key, 0); val[0] != byte(key) || val[width-1] != byte(key) {
			t.Errorf("value of %d was lost", key)
		}
	}
}

func TestDamageIsNamed(t *testing.T) {
	b := NewBackend(0, testGroups-1)
	ts := open(t, b)
	for key := uint64(0); key < 20; key++ {
		ts.fixed.Upsert(groupOf(key), key, 0)
	}
	var buf bytes.Buffer
	groups, err := b.Snapshot().Write(&buf)
	if err != nil {
		t.Fatal(err)
	}
	for pos := 0; pos < buf.Len(); pos += 5 {
		data := bytes.Clone(buf.Bytes())
		data[pos] ^= 0x10
		err := NewBackend(0, testGroups-1).Restore(bytes.NewReader(data), groups)
		if _, ok := errors.AsType[*CorruptError](err); !ok {
			t.Errorf("a flipped bit at %d: %v", pos, err)
		}
	}
	err = NewBackend(0, testGroups-1).Restore(bytes.NewReader(buf.Bytes()[:buf.Len()-1]), groups)
	if _, ok := errors.AsType[*CorruptError](err); !ok {
		t.Errorf("a cut file: %v", err)
	}
}

func TestAskingDifferently(t *testing.T) {
	b := NewBackend(0, 1)
	open(t, b)
	if _, err := b.Table("fixed", 25); err == nil {
		t.Error("another width was accepted")
	}
	if _, err := b.VarTable("fixed"); err == nil {
		t.Error("a fixed table was opened as a variable one")
	}
	if _, err := b.Table("vars", 8); err == nil {
		t.Error("a variable table was opened as a fixed one")
	}
	if _, err := b.Table("zero", 0); err == nil {
		t.Error("a width of 0 was accepted")
	}
}

// A window state that grows and is emptied again must not keep its memory.
func TestDeletedStateIsFreed(t *testing.T) {
	b := NewBackend(0, 0)
	tab, _ := b.Table("t", 1024)
	for key := uint64(0); key < 10000; key++ {
		tab.Upsert(0, key, 0)
	}
	for key := uint64(0); key < 10000; key++ {
		tab.Delete(0, key, 0)
	}
	g := &tab.groups[0]
	if len(g.chunks) > 2 || len(g.slots) > 256 || cap(g.entries) > 256 {
		t.Errorf("left: %d chunks, %d slots, %d entries", len(g.chunks), len(g.slots), cap(g.entries))
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	b := NewBackend(0, 63)
	tab, _ := b.Table("sum", 8)
	key := uint64(0)
	for ; key < 1000; key++ {
		tab.Upsert(int(key&63), key, 0)
	}
	if n := testing.AllocsPerRun(1000, func() {
		key++
		val, _ := tab.Upsert(int(key%1000&63), key%1000, 0)
		val[0]++
		tab.Get(int(key%1000&63), key%1000, 0)
	}); n != 0 {
		t.Errorf("%v allocations an update", n)
	}
	for i := int64(0); i < 100; i++ {
		b.Timers().Register(5, Timer{i, 1, 1})
	}
	if n := testing.AllocsPerRun(1000, func() {
		b.Timers().Advance(-1, nil)
	}); n != 0 {
		t.Errorf("%v allocations an idle advance", n)
	}
}

func TestWriteErrorIsReturned(t *testing.T) {
	b := NewBackend(0, 63)
	tab, _ := b.Table("t", 1<<16)
	for key := uint64(0); key < 64; key++ {
		tab.Upsert(int(key), key, 0)
	}
	full := errors.New("full")
	if _, err := b.Snapshot().Write(&limited{1 << 20, full}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type limited struct {
	left int
	err  error
}

func (w *limited) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, w.err
	}
	return len(p), nil
}

// A deleted timer is not in a snapshot, wherever in the heap it was.
func TestDeletedTimersAreNotSaved(t *testing.T) {
	b := NewBackend(0, 0)
	for i := int64(1); i <= 5; i++ {
		b.Timers().Register(0, Timer{Time: i})
	}
	b.Timers().Delete(0, Timer{Time: 3})
	var buf bytes.Buffer
	groups, err := b.Snapshot().Write(&buf)
	if err != nil {
		t.Fatal(err)
	}
	b = NewBackend(0, 0)
	if err := b.Restore(bytes.NewReader(buf.Bytes()), groups); err != nil {
		t.Fatal(err)
	}
	var fired []int64
	b.Timers().Advance(10, func(_ int, tm Timer) error { fired = append(fired, tm.Time); return nil })
	if !slices.Equal(fired, []int64{1, 2, 4, 5}) {
		t.Errorf("fired: %v", fired)
	}
}

func TestAdvanceStopsAtError(t *testing.T) {
	b := NewBackend(0, 1)
	stop := errors.New("stop")
	for i := int64(0); i < 4; i++ {
		b.Timers().Register(int(i&1), Timer{Time: i})
	}
	err := b.Timers().Advance(10, func(_ int, tm Timer) error {
		if tm.Time == 1 {
			return stop
		}
		return nil
	})
	if err != stop || b.Timers().Len() != 2 || b.Timers().Next() != 2 {
		t.Errorf("err %v, %d timers left, next %d", err, b.Timers().Len(), b.Timers().Next())
	}
}

func TestRedistribute(t *testing.T) {
	old := [][]string{{"a", "b", "c"}, {}, {"d"}}
	for _, c := range []struct {
		mode Mode
		p    int
		want string
	}{
		{Split, 3, "[[a b c] [] [d]]"},
		{Split, 2, "[[a c] [b d]]"},
		{Split, 5, "[[a] [b] [c] [d] []]"},
		{Union, 2, "[[a b c d] [a b c d]]"},
		{Broadcast, 4, "[[a b c] [] [d] [a b c]]"},
	} {
		if got := fmt.Sprint(Redistribute(old, c.mode, c.p)); got != c.want {
			t.Errorf("%s to %d: %s, want %s", c.mode, c.p, got, c.want)
		}
	}
	if got := Redistribute[string](nil, Union, 2); len(got) != 2 {
		t.Errorf("nothing to two: %v", got)
	}
}

func TestItems(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 300)).Draw(t, "items")
		got, err := DecodeItems(AppendItems(nil, items))
		if err != nil || !slices.EqualFunc(got, items, bytes.Equal) {
			t.Fatalf("got %v, %v", got, err)
		}
	})
	if _, err := DecodeItems([]byte{5, 1}); err == nil {
		t.Error("a cut item was accepted")
	}
	l := &Lists{}
	if _, err := l.Get("x", Split); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Get("x", Union); err == nil {
		t.Error("another mode was accepted")
	}
}

func FuzzRestore(f *testing.F) {
	b := NewBackend(0, 0)
	tab, _ := b.Table("t", 8)
	tab.Upsert(0, 1, 2)
	b.Timers().Register(0, Timer{1, 2, 3})
	vars, _ := b.VarTable("v")
	vars.Put(0, 1, 1, []byte("value"))
	var buf bytes.Buffer
	b.Snapshot().Write(&buf)
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) >= blockHeader+blockTrailer {
			// Make it pass the outer checks, so that the parts are reached.
			data = bytes.Clone(data)
			copy(data, blockMagic)
			binary.LittleEndian.PutUint16(data[2:], blockVersion)
			binary.LittleEndian.PutUint32(data[4:], 0)
			binary.LittleEndian.PutUint64(data[8:], uint64(len(data)-blockHeader-blockTrailer))
			end := len(data) - blockTrailer
			binary.LittleEndian.PutUint32(data[end:], checksum(data[:end]))
		}
		NewBackend(0, 0).Restore(bytes.NewReader(data), []GroupOffset{{0, 0, int64(len(data))}})
	})
}

var _ io.Writer = (*limited)(nil)
