package shuffle

import (
	"testing"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// What is allocated does not grow with the records: neither to write them,
// spills included, nor to read them.
//
// Fails if Writer.Write serialises into a new slice, or Reader.next makes one.
func TestRecordsAllocateNothing(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	g := buffer.NewGlobal(32<<10, 1<<10)
	r := record.Record{Data: make([]byte, 56)}
	write := func(w *Writer, records int) {
		for i := range records {
			r.Key = uint64(i) * 0x9e3779b97f4a7c15
			if err := w.Write(int(r.Key>>60), &r); err != nil {
				t.Fatal(err)
			}
		}
	}
	const some, many = 20_000, 200_000
	w, err := s.Create(partitionOf("job", 0), WriterConfig{Subpartitions: 16, Memory: 2 << 20, Pool: g})
	if err != nil {
		t.Fatal(err)
	}
	write(w, some) // it gets its memory
	if n := testing.AllocsPerRun(1, func() { write(w, many) }); n > many/1000 {
		t.Errorf("%v allocations to write %d records", n, many)
	}
	if _, err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	x, err := s.Reader(partitionOf("job", 0), Range{0, 15})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{}, 1)
	x.Attach(func() {
		select {
		case ready <- struct{}{}:
		default:
		}
	})
	var des record.Deserializer
	got := 0
	read := func(records int) {
		for stop := got + records; got < stop; {
			b, p := x.Poll(true)
			if p.Err != nil {
				t.Fatal(p.Err)
			}
			if !p.OK {
				<-ready
				continue
			}
			if !b.IsData() {
				return
			}
			for des.Feed(b.Data); ; got++ {
				if body, err := des.Next(); err != nil {
					t.Fatal(err)
				} else if body == nil {
					break
				}
			}
			b.Release()
		}
	}
	read(some)
	if n := testing.AllocsPerRun(1, func() { read(many) }); n > many/1000 {
		t.Errorf("%v allocations to read %d records", n, many)
	}
	x.Close()
	shut(t, s)
}
