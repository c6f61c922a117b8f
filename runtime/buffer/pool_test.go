package buffer

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/record"
)

// pool is what a test knows of one local pool.
type pool struct {
	*Local
	out      []*Segment
	closed   bool
	waiting  int // > 0: a request up to this was refused and not told of since
	notified bool
}

// poolMachine drives a global pool and checks its promises after every step.
type poolMachine struct {
	g     *Global
	pools []*pool
	// strict holds while no pool was opened when segments were out beyond the
	// minimums: then the total is never exceeded.
	strict bool
}

func (m *poolMachine) pick(t *rapid.T) *pool {
	if len(m.pools) == 0 {
		t.Skip("no pool")
	}
	return rapid.SampledFrom(m.pools).Draw(t, "pool")
}

func (m *poolMachine) reserved() (n int) {
	for _, p := range m.pools {
		if !p.closed {
			n += p.min
		}
	}
	return n
}

func (m *poolMachine) used() (n int) {
	for _, p := range m.pools {
		n += len(p.out)
	}
	return n
}

// spare is what may be handed out beyond the minimums.
func (m *poolMachine) spare() int {
	n := m.g.total - m.used()
	for _, p := range m.pools {
		if !p.closed {
			n -= max(0, p.min-len(p.out))
		}
	}
	return n
}

func (m *poolMachine) could(p *pool, limit int) bool {
	return !p.closed && len(p.out) < limit && (len(p.out) < p.min || m.spare() > 0)
}

func (m *poolMachine) Open(t *rapid.T) {
	min := rapid.IntRange(0, 4).Draw(t, "min")
	max := rapid.IntRange(0, 8).Draw(t, "max")
	over := rapid.IntRange(0, 3).Draw(t, "overdraft")
	p := &pool{}
	name := fmt.Sprintf("pool-%d", len(m.pools))
	fits := m.reserved()+min <= m.g.total
	excess := false
	for _, q := range m.pools {
		excess = excess || q.closed && len(q.out) > 0 || len(q.out) > q.min
	}
	l, err := m.g.NewLocal(name, min, max, over, func() { p.notified = true })
	if (err == nil) != fits {
		t.Fatalf("min %d with %d of %d reserved: %v", min, m.reserved(), m.g.total, err)
	}
	if err != nil {
		var ins *InsufficientError
		if !errors.As(err, &ins) || ins.Pool != name || ins.Needed != min || ins.Reserved != m.reserved() {
			t.Fatalf("error %#v", err)
		}
		return
	}
	if excess {
		m.strict = false
	}
	p.Local = l
	m.pools = append(m.pools, p)
}

func (m *poolMachine) request(t *rapid.T, p *pool, limit int, wait bool, s *Segment) {
	could := m.could(p, limit)
	if (s != nil) != could {
		t.Fatalf("%s has %d (min %d, limit %d), %d to spare: granted %v", p.name, len(p.out), p.min, limit, m.spare(), s != nil)
	}
	if s != nil {
		if len(s.Mem()) != m.g.SegmentSize() {
			t.Fatalf("segment of %d bytes", len(s.Mem()))
		}
		for _, q := range m.pools {
			for _, x := range q.out {
				if x == s {
					t.Fatalf("%s got a segment that %s has", p.name, q.name)
				}
			}
		}
		p.out = append(p.out, s)
	} else if wait && !p.closed {
		p.waiting = max(p.waiting, limit)
		p.notified = false
	}
}

func (m *poolMachine) TryRequest(t *rapid.T) {
	p := m.pick(t)
	m.request(t, p, p.max, true, p.TryRequest())
}

func (m *poolMachine) Overdraft(t *rapid.T) {
	p := m.pick(t)
	m.request(t, p, p.max+p.overdraft, true, p.RequestOverdraft())
}

func (m *poolMachine) Poll(t *rapid.T) {
	p := m.pick(t)
	m.request(t, p, p.max, false, p.Poll())
}

func (m *poolMachine) Release(t *rapid.T) {
	p := m.pick(t)
	if len(p.out) == 0 {
		t.Skip("nothing is out")
	}
	i := rapid.IntRange(0, len(p.out)-1).Draw(t, "segment")
	s := p.out[i]
	if rapid.Bool().Draw(t, "retained") {
		s.Retain()
		s.Release() // not the last reference
	}
	p.out = append(p.out[:i], p.out[i+1:]...)
	s.Release()
	m.told(t)
}

func (m *poolMachine) Close(t *rapid.T) {
	p := m.pick(t)
	p.Local.Close()
	p.closed = true
	m.told(t)
}

// told checks that whoever was refused and could be served now was notified.
// It only could be worth it after a segment came back or a pool closed.
func (m *poolMachine) told(t *rapid.T) {
	for _, p := range m.pools {
		if p.waiting == 0 {
			continue
		}
		if p.closed || p.notified {
			p.waiting = 0
			continue
		}
		if m.could(p, p.waiting) {
			t.Fatalf("%s waits with %d of %d, %d to spare, and was not told", p.name, len(p.out), p.waiting, m.spare())
		}
	}
}

func (m *poolMachine) Check(t *rapid.T) {
	used := m.used()
	if s := m.g.Stats(); s.Used != used || s.Peak < used {
		t.Fatalf("stats %+v, %d are out", s, used)
	}
	for _, p := range m.pools {
		if p.Used() != len(p.out) {
			t.Fatalf("%s: Used %d, %d are out", p.name, p.Used(), len(p.out))
		}
		if len(p.out) > p.max+p.overdraft {
			t.Fatalf("%s has %d, maximum %d+%d", p.name, len(p.out), p.max, p.overdraft)
		}
	}
	if m.strict && used > m.g.total {
		t.Fatalf("%d of %d are out", used, m.g.total)
	}
}

func (m *poolMachine) drain(t *rapid.T) {
	for _, p := range m.pools {
		if rapid.Bool().Draw(t, "close first") {
			p.Local.Close()
		}
		for _, s := range p.out {
			s.Release()
		}
		p.Local.Close()
		p.Local.Close() // again is fine
		if s := p.TryRequest(); s != nil {
			t.Fatal("a closed pool hands out")
		}
	}
	if s := m.g.Stats(); s.Used != 0 || s.Pools != 0 || s.Waiters != 0 {
		t.Fatalf("left: %+v", s)
	}
	g := m.g
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.reserved != 0 || g.mu.owed != 0 || len(g.mu.free) != g.mu.made {
		t.Fatalf("left: reserved %d, owed %d, %d of %d free", g.mu.reserved, g.mu.owed, len(g.mu.free), g.mu.made)
	}
}

// The guarantee of the package, step by step against a model.
func TestPoolGuarantee(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &poolMachine{g: NewGlobal(16, rapid.IntRange(0, 16).Draw(t, "total")), strict: true}
		t.Repeat(map[string]func(*rapid.T){
			"open": m.Open, "try": m.TryRequest, "overdraft": m.Overdraft, "poll": m.Poll,
			"release": m.Release, "close": m.Close, "": m.Check,
		})
		m.drain(t)
	})
}

// Who was refused an overdraft is told when that is possible again, though a
// plain request was refused since.
func TestRefusedOverdraftIsRememberedBehindARefusedRequest(t *testing.T) {
	told := 0
	l, err := NewGlobal(8, 4).NewLocal("l", 1, 1, 1, func() { told++ })
	if err != nil {
		t.Fatal(err)
	}
	a, b := l.TryRequest(), l.RequestOverdraft()
	if a == nil || b == nil || l.RequestOverdraft() != nil || l.TryRequest() != nil {
		t.Fatal("limits of 1 and 2 are not kept")
	}
	b.Release()
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	a.Release()
}

func TestInsufficientMemoryNamesWhatToRaise(t *testing.T) {
	g := NewGlobal(32<<10, 10)
	if _, err := g.NewLocal("gate of task a", 7, 9, 0, nil); err != nil {
		t.Fatal(err)
	}
	_, err := g.NewLocal("partition of task b", 4, 9, 0, nil)
	if err == nil {
		t.Fatal("11 of 10 segments were promised")
	}
	for _, want := range []string{"partition of task b", "needs 4 buffers", "7 of 10", "cluster.network-memory", fmt.Sprint(11 * 32 << 10)} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestDoubleReleasePanics(t *testing.T) {
	g := NewGlobal(8, 1)
	l, err := g.NewLocal("l", 1, 1, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := l.TryRequest()
	s.Release()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
		if u := g.Stats().Used; u != 0 {
			t.Errorf("used %d", u)
		}
	}()
	s.Release()
}

type keeper struct{ kept []*Segment }

func (k *keeper) Recycle(s *Segment) { k.kept = append(k.kept, s) }

func TestRecyclerKeepsTheSegmentUntilFree(t *testing.T) {
	g := NewGlobal(8, 1)
	l, err := g.NewLocal("l", 1, 1, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var k keeper
	s := l.TryRequest()
	s.SetRecycler(&k)
	s.Floating = true
	b := Buffer{Seg: s, Data: s.Mem()[:3]}
	b.Retain()
	b.Release()
	b.Release()
	if len(k.kept) != 1 || l.Used() != 1 {
		t.Fatalf("recycler has %d, pool misses %d", len(k.kept), l.Used())
	}
	s.Reuse().Release()
	if len(k.kept) != 2 {
		t.Fatal("a reused segment does not come back to its recycler")
	}
	s.Free()
	if l.Used() != 0 || s.Floating {
		t.Fatal("Free did not return it as it was")
	}
	l.TryRequest().Release()
	if len(k.kept) != 2 {
		t.Error("a freed segment still knows its recycler")
	}
}

func TestEventBufferNeedsNoSegment(t *testing.T) {
	b := Buffer{Event: &record.Event{Kind: record.Barrier}}
	b.Retain()
	b.Release()
	b.Release()
	if b.IsData() {
		t.Error("an event is data")
	}
}

// Tasks that wait for each other's memory all get on: nobody sleeps for ever.
func TestWaitersAreWokenUnderLoad(t *testing.T) {
	g := NewGlobal(8, 6)
	var done sync.WaitGroup
	for i := range 4 {
		wake := make(chan struct{}, 1)
		l, err := g.NewLocal(fmt.Sprint(i), 1, 3, 1, func() {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		done.Go(func() {
			defer l.Close()
			for n := range 2000 {
				var held []*Segment
				for range 1 + n%3 {
					s := l.TryRequest()
					for s == nil && len(held) == 0 {
						<-wake
						s = l.TryRequest()
					}
					if s != nil {
						held = append(held, s)
					}
				}
				for _, s := range held {
					s.Release()
				}
			}
		})
	}
	done.Wait()
	if s := g.Stats(); s.Used != 0 || s.Pools != 0 || s.Waiters != 0 || s.Peak > 6 {
		t.Errorf("left: %+v", s)
	}
}

func TestRequestAndReleaseDoNotAllocate(t *testing.T) {
	g := NewGlobal(8, 2)
	l, err := g.NewLocal("l", 1, 2, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.TryRequest().Release()
	if n := testing.AllocsPerRun(100, func() { l.TryRequest().Release() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
