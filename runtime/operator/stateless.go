package operator

import (
	"bytes"

	"benchrun/runtime/record"
)

// mapper passes records on: map and co-map.
type mapper struct {
	base
	cost cost
}

func (o *mapper) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	return o.c.Out.Emit(r)
}

// filter keeps a share of the records, chosen by their number.
type filter struct {
	base
	cost cost
	keep uint64
}

// threshold is the bound below which Mix of a number passes.
func threshold(share float64) uint64 {
	if share >= 1 {
		return 1<<64 - 1
	}
	return uint64(share * (1 << 63) * 2)
}

func (o *filter) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	if record.Mix(r.Number) > o.keep {
		return nil
	}
	return o.c.Out.Emit(r)
}

// flatMap emits copies, numbered so that each has an identity.
type flatMap struct {
	base
	cost   cost
	fanOut uint32
	out    record.Record
}

func (o *flatMap) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	for i := range o.fanOut {
		o.out = *r
		o.out.Copy = r.Copy*o.fanOut + i
		if err := o.c.Out.Emit(&o.out); err != nil {
			return err
		}
	}
	return nil
}

// splitWords makes one record a word of the line in Data. A word is a run of
// letters, digits and underscores of ASCII, or of bytes above it. Its number is
// the line's plus its place in the line: the source numbers lines by their
// place in the file, so that stays unique, and dense.
type splitWords struct {
	base
	cost cost
	out  record.Record
}

func (o *splitWords) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	for at := 0; ; {
		start := bytes.IndexFunc(r.Data[at:], isWord)
		if start < 0 {
			return nil
		}
		start += at
		end := bytes.IndexFunc(r.Data[start:], func(c rune) bool { return !isWord(c) })
		if end < 0 {
			end = len(r.Data)
		} else {
			end += start
		}
		o.out = *r
		o.out.Data = r.Data[start:end]
		o.out.Key = HashText(o.out.Data)
		o.out.Value = 1
		o.out.Number = r.Number + uint64(start)
		if err := o.c.Out.Emit(&o.out); err != nil {
			return err
		}
		at = end
	}
}

func isWord(c rune) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// HashText is the 64-bit key of a text: FNV-1a, finished by Mix.
func HashText(b []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range b {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return record.Mix(h)
}

// discard throws records away.
type discard struct {
	base
	cost cost
	n    int64
}

func (o *discard) Process(int, *record.Record) error {
	o.cost.charge(o.c)
	o.n++
	return nil
}

func (o *discard) Watermark(int64) error { return nil }

// Arrived implements Counter.
func (o *discard) Arrived() int64 { return o.n }

// Counter is a sink that counts arrivals; it may be asked between records.
type Counter interface {
	Arrived() int64
}
