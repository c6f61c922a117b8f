package shuffle

import (
	"testing"
	"time"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// BenchmarkShuffle writes records of 100 bytes and reads all of them by local
// gates: the way from one subtask through a file to the next.
func BenchmarkShuffle(b *testing.B) {
	for _, codec := range []Codec{None, LZ4, Zstd} {
		b.Run(codec.String(), func(b *testing.B) { benchmarkShuffle(b, codec) })
	}
}

func benchmarkShuffle(b *testing.B, codec Codec) {
	const (
		subs    = 100
		memory  = 16 << 20
		records = 5 << 20
		size    = 100
	)
	s, _, err := Open(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	g := buffer.NewGlobal(32<<10, 4<<10)
	var wrote, readIn time.Duration
	for i := range b.N {
		id := partitionOf("job", i)
		begin := time.Now()
		w, err := s.Create(id, WriterConfig{Subpartitions: subs, Memory: memory, Pool: g, Codec: codec})
		if err != nil {
			b.Fatal(err)
		}
		r := record.Record{Data: make([]byte, size-record.HeaderSize)}
		x := uint64(88172645463325252)
		for n := range uint64(records) {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			r.Key, r.Number = x, n
			if err := w.Write(int(x%subs), &r); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := w.Finish(); err != nil {
			b.Fatal(err)
		}
		middle := time.Now()
		var got int
		for sub := 0; sub < subs; sub += 5 {
			got += countRecords(b, s, id, Range{sub, sub + 4})
		}
		end := time.Now()
		if got != records {
			b.Fatalf("%d of %d records came out", got, records)
		}
		wrote += middle.Sub(begin)
		readIn += end.Sub(middle)
		if peak := g.Stats().Peak * g.SegmentSize(); peak > memory {
			b.Fatalf("%d bytes of memory, the limit is %d", peak, memory)
		}
		if err := s.Release(id); err != nil {
			b.Fatal(err)
		}
	}
	mb := float64(b.N) * records * size / 1e6
	b.ReportMetric(mb/wrote.Seconds(), "write-MB/s")
	b.ReportMetric(mb/readIn.Seconds(), "read-MB/s")
	b.ReportMetric(mb/(wrote+readIn).Seconds(), "MB/s")
	if codec == None {
		b.ReportMetric(300, "MB/s-target")
	}
}

// countRecords reads a range as a task does.
func countRecords(b *testing.B, s *Store, id PartitionID, r Range) (n int) {
	g := newGate(b, buffer.NewGlobal(32<<10, 16), 1, 0)
	defer g.Close()
	if err := s.Connect(g.Gate, []Input{{Partition: id, Range: r}}, 1); err != nil {
		b.Fatal(err)
	}
	var des record.Deserializer
	for {
		_, buf, ok := g.Poll()
		if !ok {
			if err := g.Err(); err != nil {
				b.Fatal(err)
			}
			<-g.wake
			continue
		}
		if !buf.IsData() {
			if buf.Event.Kind == record.EndOfPartition {
				return n
			}
			continue
		}
		des.Feed(buf.Data)
		for {
			body, err := des.Next()
			if err != nil {
				b.Fatal(err)
			}
			if body == nil {
				break
			}
			n++
		}
		buf.Release()
	}
}
