package source

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"benchrun/runtime/operator"
	"benchrun/runtime/record"
)

// sequence emits numbers with a key and a payload. Split s of S has s, s+S,
// s+2S, …. Splits of one reader take turns, so that numbers ascend as far as
// they can.
type sequence struct {
	p     Params
	start time.Time

	splits []seqSplit // by index
	turn   int        // position in splits
	round  uint64     // smallest k of an open split
	open   int        // splits that are not at their end
	last   bool       // no more splits will come
	stop   bool

	rec     record.Record
	data    []byte
	emitted int64
	zipf    []float64
}

// seqSplit is one split; its next number is index + k*S.
type seqSplit struct {
	index uint32
	k     uint64
	end   uint64
}

const seqSplitSize = 12

func newSequence(p Params, start time.Time) (*sequence, error) {
	if p.RecordSize < record.HeaderSize || p.RecordSize > record.MaxElement {
		return nil, fmt.Errorf("source: record size %d is outside %d..%d", p.RecordSize, record.HeaderSize, record.MaxElement)
	}
	if p.Splits < 1 || p.Keys < 1 {
		return nil, fmt.Errorf("source: needs at least one split and one key")
	}
	s := &sequence{p: p, start: start, data: record.NewPattern(p.RecordSize - record.HeaderSize)}
	if p.Skew > 0 {
		s.zipf = zipfTable(p.Keys, p.Skew)
	}
	return s, nil
}

// zipfTable is the cumulated distribution of ranks 0..n-1 with weight
// 1/(rank+1)^z.
func zipfTable(n uint64, z float64) []float64 {
	t := make([]float64, n)
	sum := 0.0
	for i := range t {
		sum += math.Pow(float64(i+1), -z)
		t[i] = sum
	}
	for i := range t {
		t[i] /= sum
	}
	return t
}

func sequenceSplits(p Params) [][]byte {
	out := make([][]byte, p.Splits)
	for i := range out {
		out[i] = seqSplit{index: uint32(i)}.bytes()
	}
	return out
}

func (s seqSplit) bytes() []byte {
	b := make([]byte, 0, seqSplitSize)
	b = binary.LittleEndian.AppendUint32(b, s.index)
	return binary.LittleEndian.AppendUint64(b, s.k)
}

// ReadSequenceSplit reads the index of a split and how many of its numbers
// have been emitted.
func ReadSequenceSplit(b []byte) (index int, emitted uint64, err error) {
	if len(b) != seqSplitSize {
		return 0, 0, fmt.Errorf("source: split of %d bytes", len(b))
	}
	return int(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint64(b[4:]), nil
}

func (s *sequence) AddSplits(splits [][]byte) error {
	for _, b := range splits {
		index, k, err := ReadSequenceSplit(b)
		if err != nil {
			return err
		}
		if index >= s.p.Splits {
			return fmt.Errorf("source: split %d of %d; the number of splits must not change between runs", index, s.p.Splits)
		}
		end := uint64(math.MaxUint64)
		if s.p.Records > 0 {
			end = 0
			if uint64(index) < s.p.Records {
				end = (s.p.Records - uint64(index) + uint64(s.p.Splits) - 1) / uint64(s.p.Splits)
			}
		}
		if s.stop {
			end = min(end, k)
		}
		s.splits = append(s.splits, seqSplit{uint32(index), k, end})
	}
	slices.SortFunc(s.splits, func(a, b seqSplit) int { return cmp.Compare(a.index, b.index) })
	s.rewind()
	return nil
}

func (s *sequence) rewind() {
	s.turn, s.open, s.round = 0, 0, math.MaxUint64
	for i := range s.splits {
		if x := &s.splits[i]; x.k < x.end {
			s.open++
			s.round = min(s.round, x.k)
		}
	}
}

func (s *sequence) NoMoreSplits() { s.last = true }

func (s *sequence) Stop() {
	if s.p.Records > 0 {
		return // bounded: it runs to its end
	}
	s.stop = true
	for i := range s.splits {
		s.splits[i].end = min(s.splits[i].end, s.splits[i].k)
	}
	s.rewind()
}

func (s *sequence) Next(out operator.Output, n int, more func() bool) (Progress, time.Time, error) {
	if s.open == 0 {
		if s.last || s.stop {
			return End, time.Time{}, nil
		}
		return Idle, time.Time{}, nil
	}
	due := uint64(math.MaxUint64)
	if s.p.Rate > 0 {
		due = uint64(time.Since(s.start).Seconds() * s.p.Rate)
	}
	total := uint64(s.p.Splits)
	for n > 0 && more() {
		if s.turn == len(s.splits) {
			s.turn = 0
			s.round++
		}
		x := &s.splits[s.turn]
		if x.k != s.round || x.k >= x.end {
			s.turn++
			continue
		}
		number := uint64(x.index) + x.k*total
		if number > due {
			// Rounded up: at that time it must be due, or the task would spin.
			at := s.start.Add(time.Duration(math.Ceil(float64(number)/s.p.Rate*1e9)) + 1)
			return Wait, at, nil
		}
		s.make(number)
		if err := out.Emit(&s.rec); err != nil {
			return More, time.Time{}, err
		}
		s.emitted++
		n--
		s.turn++
		if x.k++; x.k == x.end {
			if s.open--; s.open == 0 {
				if s.last {
					return End, time.Time{}, nil
				}
				return Idle, time.Time{}, nil
			}
		}
	}
	return More, time.Time{}, nil
}

func (s *sequence) make(number uint64) {
	h := record.Mix(number)
	r := &s.rec
	r.Number, r.Time, r.Source = number, int64(number), s.p.Source
	r.Value = int64(h >> 56)
	r.Flags = record.FlagPattern
	if s.zipf == nil {
		r.Key = h % s.p.Keys
	} else {
		u := float64(h>>11) / (1 << 53)
		r.Key = uint64(min(sort.Search(len(s.zipf), func(i int) bool { return s.zipf[i] > u }), len(s.zipf)-1))
	}
	record.SetPattern(s.data, number)
	r.Data = s.data
}

func (s *sequence) Watermark() int64 {
	if s.open == 0 {
		if s.last || s.stop {
			return record.MaxWatermark
		}
		return record.MinWatermark
	}
	least := uint64(math.MaxUint64)
	for i := range s.splits {
		if x := &s.splits[i]; x.k < x.end {
			least = min(least, uint64(x.index)+x.k*uint64(s.p.Splits))
		}
	}
	return int64(least) - 1
}

func (s *sequence) Splits() [][]byte {
	out := make([][]byte, len(s.splits))
	for i, x := range s.splits {
		out[i] = x.bytes()
	}
	return out
}

func (s *sequence) Emitted() int64 { return s.emitted }

func (s *sequence) Lag(now time.Time) (time.Duration, bool) {
	if s.p.Rate == 0 {
		return 0, false
	}
	if s.open == 0 {
		return 0, true
	}
	due := s.start.Add(time.Duration(float64(s.Watermark()+1) / s.p.Rate * 1e9))
	return max(0, now.Sub(due)), true
}
