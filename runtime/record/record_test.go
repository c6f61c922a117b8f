package record

import (
	"bytes"
	"encoding/binary"
	"testing"

	"pgregory.net/rapid"
)

// element is one element of a stream as a test sees it.
type element struct {
	tag    byte
	rec    Record
	time   int64
	active bool
}

func genRecord(t *rapid.T) Record {
	return Record{
		Key: rapid.Uint64().Draw(t, "key"), Number: rapid.Uint64().Draw(t, "number"),
		Time: rapid.Int64().Draw(t, "time"), Value: rapid.Int64().Draw(t, "value"),
		Copy: rapid.Uint32().Draw(t, "copy"), Source: rapid.Uint16().Draw(t, "source"),
		Flags: rapid.Uint8().Draw(t, "flags"), Data: rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "data"),
	}
}

func genElements(t *rapid.T) []element {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) element {
		e := element{tag: rapid.SampledFrom([]byte{TagRecord, TagRecord, TagWatermark, TagStatus}).Draw(t, "tag")}
		switch e.tag {
		case TagRecord:
			e.rec = genRecord(t)
		case TagWatermark:
			e.time = rapid.Int64().Draw(t, "watermark")
		case TagStatus:
			e.active = rapid.Bool().Draw(t, "active")
		}
		return e
	}), 1, 12).Draw(t, "elements")
}

// stream lays elements out back to back.
func stream(elements []element) (b []byte) {
	for i := range elements {
		e := &elements[i]
		at := len(b)
		switch e.tag {
		case TagRecord:
			b = append(b, make([]byte, e.rec.Size())...)
			e.rec.Put(b[at:])
		case TagWatermark:
			b = append(b, make([]byte, WatermarkSize)...)
			PutWatermark(b[at:], e.time)
		case TagStatus:
			b = append(b, make([]byte, StatusSize)...)
			PutStatus(b[at:], e.active)
		}
	}
	return b
}

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// read hands the pieces to a deserializer and reads what comes out.
func read(t failer, pieces [][]byte) (got []element) {
	t.Helper()
	var d Deserializer
	for _, p := range pieces {
		d.Feed(p)
		for {
			body, err := d.Next()
			if err != nil {
				t.Fatalf("after %d elements: %v", len(got), err)
			}
			if body == nil {
				break
			}
			if err := CheckBody(body); err != nil {
				t.Fatalf("element %d: %v", len(got), err)
			}
			e := element{tag: body[0]}
			switch e.tag {
			case TagRecord:
				e.rec.Get(body)
				if k := BodyKey(body); k != e.rec.Key {
					t.Fatalf("BodyKey says %d, Get says %d", k, e.rec.Key)
				}
				e.rec.Data = bytes.Clone(e.rec.Data)
			case TagWatermark:
				e.time = WatermarkTime(body)
			case TagStatus:
				e.active = body[1] == 1
			}
			got = append(got, e)
		}
	}
	if !d.Empty() {
		t.Fatalf("bytes are left over")
	}
	return got
}

func same(t failer, got, want []element) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d elements, want %d", len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if !bytes.Equal(g.rec.Data, w.rec.Data) {
			t.Fatalf("element %d: data %x, want %x", i, g.rec.Data, w.rec.Data)
		}
		g.rec.Data, w.rec.Data = nil, nil
		if g.tag != w.tag || g.time != w.time || g.active != w.active ||
			g.rec.Key != w.rec.Key || g.rec.Number != w.rec.Number || g.rec.Time != w.rec.Time || g.rec.Value != w.rec.Value ||
			g.rec.Copy != w.rec.Copy || g.rec.Source != w.rec.Source || g.rec.Flags != w.rec.Flags {
			t.Fatalf("element %d: %+v, want %+v", i, g, w)
		}
	}
}

func TestElementsSurviveAnyPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genElements(t)
		b := stream(want)
		var pieces [][]byte
		for len(b) > 0 {
			n := rapid.IntRange(0, min(len(b), 60)).Draw(t, "piece")
			pieces, b = append(pieces, b[:n]), b[n:]
		}
		same(t, read(t, pieces), want)
	})
}

func TestElementsSurviveACutAnywhere(t *testing.T) {
	want := []element{
		{tag: TagWatermark, time: -7}, {tag: TagRecord, rec: Record{Key: 1 << 63, Number: 3, Time: -1, Value: -2, Copy: 4, Source: 5, Flags: 3, Data: []byte("spanning")}},
		{tag: TagStatus, active: true}, {tag: TagRecord, rec: Record{Key: 9}}, {tag: TagStatus}, {tag: TagWatermark, time: MaxWatermark},
	}
	b := stream(want)
	for i := range len(b) + 1 {
		for j := i; j <= len(b); j++ {
			same(t, read(t, [][]byte{b[:i], b[i:j], b[j:]}), want)
		}
	}
}

// What a checkpoint stores for a channel is what was fed and not handed out,
// in order: a reader of that and of the rest goes on exactly there.
func TestLeftoverIsWhatWasNotHandedOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genElements(t)
		b := stream(want)
		cut := rapid.IntRange(0, len(b)).Draw(t, "cut")
		mid := rapid.IntRange(0, cut).Draw(t, "mid")
		stop := rapid.IntRange(0, len(want)).Draw(t, "stop")
		var d Deserializer
		handed, at := 0, 0
		fed := 0
		for _, end := range []int{mid, cut} {
			d.Feed(b[fed:end])
			fed = end
			var body []byte
			var err error
			for handed < stop {
				if body, err = d.Next(); err != nil {
					t.Fatal(err)
				}
				if body == nil {
					break
				}
				handed++
				at += 4 + len(body)
			}
			if handed == stop {
				break // within a piece, perhaps
			}
		}
		partial, rest := d.Leftover()
		if got := append(bytes.Clone(partial), rest...); !bytes.Equal(got, b[at:fed]) {
			t.Fatalf("leftover %x, want %x", got, b[at:fed])
		}
		if d.Empty() != (at == fed) {
			t.Fatalf("Empty is %v with %d bytes left", d.Empty(), fed-at)
		}
		same(t, read(t, [][]byte{partial, rest, b[fed:]}), want[handed:])
		d.Reset()
		if !d.Empty() {
			t.Fatal("not empty after Reset")
		}
	})
}

func TestHugeRecordDoesNotPinItsMemory(t *testing.T) {
	r := Record{Data: make([]byte, 2<<20)}
	b := make([]byte, r.Size())
	r.Put(b)
	var d Deserializer
	d.Feed(b[:10])
	if body, err := d.Next(); body != nil || err != nil {
		t.Fatal(body, err)
	}
	d.Feed(b[10:])
	if body, err := d.Next(); len(body) != r.Size()-4 || err != nil {
		t.Fatal(len(body), err)
	}
	if p, _ := d.Leftover(); cap(p) != 0 {
		t.Errorf("%d bytes are kept", cap(p))
	}
}

func TestCorruptLengthIsAnError(t *testing.T) {
	for _, n := range []uint32{0, MaxElement + 1, 1 << 31, 1<<32 - 1} {
		b := binary.LittleEndian.AppendUint32(nil, n)
		for cut := range len(b) + 1 {
			var d Deserializer
			var err error
			for _, p := range [][]byte{b[:cut], b[cut:]} {
				d.Feed(p)
				if _, err = d.Next(); err != nil {
					break
				}
			}
			if err == nil {
				t.Errorf("length %d cut at %d passed", n, cut)
			}
		}
	}
}

func TestCorruptBodyIsAnError(t *testing.T) {
	ok := [][]byte{make([]byte, HeaderSize-4), make([]byte, HeaderSize), append([]byte{TagWatermark}, make([]byte, 8)...), {TagStatus, 1}}
	for _, b := range ok {
		if err := CheckBody(b); err != nil {
			t.Errorf("%x: %v", b, err)
		}
	}
	bad := [][]byte{nil, {}, {TagRecord}, make([]byte, HeaderSize-5), {TagWatermark}, append([]byte{TagWatermark}, make([]byte, 9)...), {TagStatus}, {TagStatus, 1, 1}, {3}, {255, 0, 0, 0}}
	for _, b := range bad {
		if CheckBody(b) == nil {
			t.Errorf("%x passed", b)
		}
	}
}

// FuzzDeserializer: whatever arrives, it is an element that can be read or an
// error, and how it was cut makes no difference.
func FuzzDeserializer(f *testing.F) {
	f.Add(stream([]element{{tag: TagRecord, rec: Record{Data: []byte("abc")}}, {tag: TagWatermark, time: 1}, {tag: TagStatus}}), uint16(7))
	f.Add([]byte{0, 0, 0, 0}, uint16(2))
	f.Add([]byte{255, 255, 255, 255, 1}, uint16(3))
	f.Add([]byte{1, 0, 0, 0, 0, 9}, uint16(5))
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		at := int(cut) % (len(b) + 1)
		whole, errWhole := drain([][]byte{b})
		cutUp, errCut := drain([][]byte{b[:at], b[at:]})
		if !bytes.Equal(whole, cutUp) || (errWhole == nil) != (errCut == nil) {
			t.Fatalf("in one: %x, %v; cut at %d: %x, %v", whole, errWhole, at, cutUp, errCut)
		}
	})
}

func drain(pieces [][]byte) (all []byte, err error) {
	var d Deserializer
	for _, p := range pieces {
		d.Feed(p)
		for {
			body, err := d.Next()
			if err != nil {
				return all, err
			}
			if body == nil {
				break
			}
			if err := CheckBody(body); err != nil {
				return all, err
			}
			if body[0] == TagRecord {
				var r Record
				r.Get(body)
				PatternOK(&r)
			}
			all = append(all, body...)
		}
	}
	return all, nil
}

func TestPutGetNextDoNotAllocate(t *testing.T) {
	r := Record{Key: 1, Number: 2, Data: NewPattern(100)}
	b := make([]byte, r.Size())
	var out Record
	var d Deserializer
	if n := testing.AllocsPerRun(100, func() {
		r.Put(b)
		d.Feed(b)
		body, _ := d.Next()
		out.Get(body)
		for _, cut := range []int{2, 50} { // spanning, too
			d.Feed(b[:cut])
			d.Next()
			d.Feed(b[cut:])
			body, _ = d.Next()
			out.Get(body)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if out.Key != 1 || out.Number != 2 || len(out.Data) != 100 {
		t.Errorf("read %+v", out)
	}
}

func TestPattern(t *testing.T) {
	for _, n := range []int{0, 7, 8, 9, 100, 4095, 4096, 4097, 10000} {
		b := NewPattern(n)
		SetPattern(b, 5)
		r := Record{Number: 5, Data: b}
		if !PatternOK(&r) {
			t.Fatalf("%d bytes: the pattern of its number is refused", n)
		}
		if n < 8 {
			continue // too short to hold one
		}
		r.Number = 6
		if PatternOK(&r) {
			t.Errorf("%d bytes: the pattern of another number passed", n)
		}
		r.Number = 5
		for _, at := range []int{0, 7, 8, n / 2, n - 1} {
			if at >= n {
				continue
			}
			b[at] ^= 1
			if PatternOK(&r) {
				t.Errorf("%d bytes: damage at %d passed", n, at)
			}
			b[at] ^= 1
		}
	}
}
