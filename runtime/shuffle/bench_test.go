package shuffle

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"benchrun/runtime/buffer"
	"benchrun/runtime/record"
)

// BenchmarkShuffle writes records of 100 bytes and reads all of them: the way from
// one subtask through a file to the next. By kind of the data behind the header:
// what a sequence makes, words, and noise, which no codec makes smaller and whose
// records have 1000 bytes, because headers can be compressed.
func BenchmarkShuffle(b *testing.B) {
	for _, x := range []struct {
		data string
		fill func(data []byte, number uint64)
		size int
	}{{"pattern", record.SetPattern, 100}, {"words", words, 100}, {"noise", noise, 1000}} {
		for _, remote := range []bool{false, true} {
			where := "local"
			if remote {
				if where = "socket"; x.data != "pattern" {
					continue
				}
			}
			for _, codec := range []Codec{None, LZ4, Zstd} {
				b.Run(x.data+"/"+where+"/"+codec.String(), func(b *testing.B) { benchmarkShuffle(b, codec, x.fill, x.size, remote) })
			}
		}
	}
}

// words fills data with words in an order of their own.
func words(data []byte, number uint64) {
	const list = "stream batch worker master record barrier region task reader writer buffer credit window split event state "
	for at := 0; at < len(data); number++ {
		from := int(record.Mix(number) % uint64(len(list)-20))
		at += copy(data[at:], list[from:from+6])
	}
}

func noise(data []byte, number uint64) {
	for i := 0; i+8 <= len(data); i += 8 {
		binary.LittleEndian.PutUint64(data[i:], record.Mix(number<<16|uint64(i)))
	}
}

func benchmarkShuffle(b *testing.B, codec Codec, fill func([]byte, uint64), size int, remote bool) {
	const (
		subs   = 100
		memory = 16 << 20
		bytes  = 200 << 20
		pool   = 1 << 14 // records that come again and again
	)
	records := bytes / size
	s, _, err := Open(Config{Dir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	h := serve(b, s)
	defer h.shut(b)
	g := buffer.NewGlobal(32<<10, 4<<10)
	made := make([][]byte, pool)
	for i := range made {
		made[i] = record.NewPattern(size - record.HeaderSize)
		fill(made[i], uint64(i))
	}
	var wrote, readIn time.Duration
	var disk int64
	for i := range b.N {
		id := partitionOf("job", i)
		begin := time.Now()
		w, err := s.Create(id, WriterConfig{Subpartitions: subs, Memory: memory, Pool: g, Codec: codec})
		if err != nil {
			b.Fatal(err)
		}
		var r record.Record
		for n := range uint64(records) {
			r.Key, r.Number, r.Data = record.Mix(n), n, made[n%pool]
			if err := w.Write(int(r.Key%subs), &r); err != nil {
				b.Fatal(err)
			}
		}
		f, err := w.Finish()
		if err != nil {
			b.Fatal(err)
		}
		disk += f.Disk
		middle := time.Now()
		var got int
		for sub := 0; sub < subs; sub += 5 {
			in := Input{Partition: id, Range: Range{sub, sub + 4}}
			if remote {
				in = h.input(id, in.Range)
			}
			got += countRecords(b, s, in)
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
	mb := float64(b.N) * float64(records*size) / 1e6
	b.ReportMetric(mb/wrote.Seconds(), "write-MB/s")
	b.ReportMetric(mb/readIn.Seconds(), "read-MB/s")
	b.ReportMetric(mb/(wrote+readIn).Seconds(), "MB/s")
	b.ReportMetric(mb*1e6/float64(disk), "ratio")
	if codec == None || codec == LZ4 {
		b.ReportMetric(300, "MB/s-target")
	}
}

// countRecords reads a range of a partition as a task does.
func countRecords(b *testing.B, s *Store, in Input) (n int) {
	g := newGate(b, buffer.NewGlobal(32<<10, 16), 1, 1)
	defer g.Close()
	if err := s.Connect(context.Background(), g.Gate, []Input{in}, 1); err != nil {
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
