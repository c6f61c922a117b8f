package expect

import (
	"fmt"
	"maps"
	"math/bits"
)

// pageBits is how many numbers a page covers.
const pageBits = 4096

// Page has a bit for each number.
type Page [pageBits / 64]uint64

// Lane is a stream of records that are told apart by their number.
type Lane struct {
	Source uint16
	Copy   uint32
}

// Expected is what a sink must have seen.
type Expected struct {
	Records int64
	mode    values // what is known of the records' values
	lanes   map[Lane]map[uint64]*Page
	values  map[uint64]int64
	aggs    map[[2]uint64]int64
	lane    Lane
	index   uint64
	page    *Page
	hash    uint64
}

func newExpected() *Expected {
	return &Expected{lanes: map[Lane]map[uint64]*Page{}, values: map[uint64]int64{}, aggs: map[[2]uint64]int64{}}
}

func (e *Expected) add(r *rec) {
	e.Records++
	if r.agg {
		e.aggs[[2]uint64{r.key, r.number}] = r.value
		e.hash += aggregateHash(r.key, r.number, r.value)
		return
	}
	l := Lane{r.source, r.copy}
	e.hash += mix(mix(r.number) ^ uint64(r.source)<<48 ^ uint64(r.copy)<<16 ^ mix(^r.key))
	if index := r.number / pageBits; e.page == nil || l != e.lane || index != e.index {
		pages := e.lanes[l]
		if pages == nil {
			pages = map[uint64]*Page{}
			e.lanes[l] = pages
		}
		p := pages[index]
		if p == nil {
			p = new(Page)
			pages[index] = p
		}
		e.lane, e.index, e.page = l, index, p
	}
	e.page[r.number%pageBits/64] |= 1 << (r.number % 64)
	e.final(r.key, r.value)
}

func (e *Expected) final(key uint64, value int64) {
	if old, ok := e.values[key]; !ok || value > old {
		e.values[key] = value
	}
}

// Seen is what the subtasks of a sink saw, added up.
type Seen struct {
	Arrived    int64
	OutOfOrder int64
	hash       uint64
	lanes      map[Lane]map[uint64]*Page
	values     map[uint64]int64
	aggs       map[[2]uint64]int64
}

// NewSeen returns an empty sum.
func NewSeen() *Seen {
	return &Seen{lanes: map[Lane]map[uint64]*Page{}, values: map[uint64]int64{}, aggs: map[[2]uint64]int64{}}
}

// Count adds arrivals, those out of order, and the sum of their hashes.
func (s *Seen) Count(arrived, outOfOrder int64, hash uint64) {
	s.Arrived += arrived
	s.OutOfOrder += outOfOrder
	s.hash += hash
}

// Page adds the numbers of one page.
func (s *Seen) Page(l Lane, index uint64, p *Page) {
	pages := s.lanes[l]
	if pages == nil {
		pages = map[uint64]*Page{}
		s.lanes[l] = pages
	}
	q := pages[index]
	if q == nil {
		q = new(Page)
		pages[index] = q
	}
	for i, w := range p {
		q[i] |= w
	}
}

// Value adds a key's largest value.
func (s *Seen) Value(key uint64, value int64) {
	if old, ok := s.values[key]; !ok || value > old {
		s.values[key] = value
	}
}

// Aggregate adds an aggregated record.
func (s *Seen) Aggregate(key, number uint64, value int64) { s.aggs[[2]uint64{key, number}] = value }

// Record adds one record that was read back from committed output. hash is
// computed here, for nobody else has.
func (s *Seen) Record(source uint16, copy uint32, key, number uint64, value int64, aggregate bool) {
	if aggregate {
		s.Count(1, 0, aggregateHash(key, number, value))
		s.Aggregate(key, number, value)
		return
	}
	s.Count(1, 0, mix(mix(number)^uint64(source)<<48^uint64(copy)<<16^mix(^key)))
	var p Page
	p[number%pageBits/64] |= 1 << (number % 64)
	s.Page(Lane{source, copy}, number/pageBits, &p)
	s.Value(key, value)
}

// Verdict is the outcome of a comparison.
type Verdict struct {
	Expected, Received, Lost, Duplicated, OutOfOrder int64
	Digest, ExpectedDigest                           string
}

// OK tells whether the output is exactly right.
func (v Verdict) OK() bool {
	return v.Received == v.Expected && v.Lost == 0 && v.Duplicated == 0 && v.Digest == v.ExpectedDigest
}

// Compare holds what was seen against what was expected. Duplicated counts
// arrivals beyond the first of each identity and those that nothing explains.
func (e *Expected) Compare(s *Seen) Verdict {
	v := Verdict{Expected: e.Records, Received: s.Arrived, OutOfOrder: s.OutOfOrder}
	var distinct, unexplained int64
	for l, pages := range s.lanes {
		want := e.lanes[l]
		for index, p := range pages {
			var zero Page
			q := &zero
			if w := want[index]; w != nil {
				q = w
			}
			for i, w := range p {
				distinct += int64(bits.OnesCount64(w))
				unexplained += int64(bits.OnesCount64(w &^ q[i]))
			}
		}
	}
	for l, pages := range e.lanes {
		got := s.lanes[l]
		for index, p := range pages {
			q := got[index]
			for i, w := range p {
				if q != nil {
					w &^= q[i]
				}
				v.Lost += int64(bits.OnesCount64(w))
			}
		}
	}
	for k := range e.aggs {
		if _, ok := s.aggs[k]; !ok {
			v.Lost++
		}
	}
	for k := range s.aggs {
		distinct++
		if _, ok := e.aggs[k]; !ok {
			unexplained++
		}
	}
	v.Duplicated = s.Arrived - distinct + unexplained
	v.Digest = digest(s.hash, s.values, s.aggs, e.mode)
	v.ExpectedDigest = digest(e.hash, e.values, e.aggs, e.mode)
	return v
}

// aggregateHash is what an aggregated record adds to the hash of identities.
func aggregateHash(key, number uint64, value int64) uint64 {
	return mix(^mix(^key) ^ mix(number+1) ^ uint64(value))
}

// aggregateValues is the part of a hash that the values of aggregates make,
// which must go where they depend on the order of arrival.
func aggregateValues(aggs map[[2]uint64]int64) (sum uint64) {
	for k, v := range aggs {
		sum += aggregateHash(k[0], k[1], v) - aggregateHash(k[0], k[1], 0)
	}
	return sum
}

// digest sums up identities and, where they are determined, final values. The
// hash has the values of aggregates in it; unless each is known they go, and
// where final ones are, the largest of a key is among those.
func digest(hash uint64, finals map[uint64]int64, aggs map[[2]uint64]int64, mode values) string {
	if mode != exact {
		hash -= aggregateValues(aggs)
	}
	if mode == final && len(aggs) > 0 {
		finals = maps.Clone(finals)
		for k, v := range aggs {
			if old, ok := finals[k[0]]; !ok || v > old {
				finals[k[0]] = v
			}
		}
	}
	var sum uint64
	if mode != unknown {
		for k, v := range finals {
			sum += mix(mix(k) + uint64(v))
		}
	}
	return fmt.Sprintf("%016x-%016x", hash, sum)
}

// FinalValues are the final values that are expected, by key.
func (e *Expected) FinalValues() map[uint64]int64 { return e.values }
