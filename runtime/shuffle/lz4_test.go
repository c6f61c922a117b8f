package shuffle

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/pierrec/lz4/v4"
	"pgregory.net/rapid"

	"benchrun/runtime/record"
)

// readLZ4 is a plain decoder that also holds a block to what the format says of its
// end.
func readLZ4(b []byte) (out []byte, err error) {
	match := -1 // where the last one begins
	for {
		if len(b) == 0 {
			return out, fmt.Errorf("no last literals")
		}
		token := b[0]
		b = b[1:]
		length := func(n int) int {
			if n == 15 {
				for more := byte(255); more == 255; n += int(more) {
					more = b[0]
					b = b[1:]
				}
			}
			return n
		}
		n := length(int(token >> 4))
		out = append(out, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			if match >= 0 && (n < 5 || match > len(out)-12) {
				return out, fmt.Errorf("last match at %d, %d literals behind it, of %d bytes", match, n, len(out))
			}
			return out, nil
		}
		match = len(out)
		from := match - int(le.Uint16(b))
		b = b[2:]
		if from < 0 || from >= match {
			return out, fmt.Errorf("match at %d goes back to %d", match, from)
		}
		for range length(int(token&15)) + 4 {
			out = append(out, out[from])
			from++
		}
	}
}

// drawCompressible draws bytes with repetitions near and far.
func drawCompressible(t *rapid.T) (b []byte) {
	size := rapid.SampledFrom([]int{0, 1, 11, 12, 13, 40, 300, 5000, 1<<16 - 3, 1 << 16, 1<<16 + 20, 200_000}).Draw(t, "size")
	for len(b) < size {
		n := min(rapid.IntRange(1, max(30, size/50)).Draw(t, "length"), size-len(b))
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			for i := range n {
				b = append(b, byte(record.Mix(uint64(len(b)+i))))
			}
		case 1:
			b = append(b, bytes.Repeat([]byte{7}, n)...)
		default:
			if len(b) == 0 {
				continue
			}
			from := rapid.IntRange(max(0, len(b)-70_000), len(b)-1).Draw(t, "from")
			for range n {
				b = append(b, b[from])
				from++
			}
		}
	}
	return b
}

// What is compressed is what comes out, of the decoder that readers use and of a
// plain one, and it is never longer than it may be.
//
// Fails if lz4LastLiterals is 4, or lz4LastMatch 10; if lz4Length writes no byte for
// a length of 15; if the place near the end of a match does not count from base.
func TestLZ4(t *testing.T) {
	var table lz4Table
	rapid.Check(t, func(t *rapid.T) {
		src := drawCompressible(t)
		dst := make([]byte, len(src)+len(src)/255+16)
		n := table.compress(dst, src)
		if n == 0 {
			t.Fatal("it does not fit into the most that it can be")
		}
		if out, err := readLZ4(dst[:n]); err != nil || !bytes.Equal(out, src) {
			t.Fatalf("other bytes: %v", err)
		}
		out := make([]byte, len(src))
		if m, err := lz4.UncompressBlock(dst[:n], out); err != nil || !bytes.Equal(out[:m], src) {
			t.Fatalf("other bytes for readers: %v", err)
		}
		room := rapid.IntRange(0, n).Draw(t, "room")
		tight := make([]byte, room)
		if m := table.compress(tight, src); m != 0 && (m != n || m > room || !bytes.Equal(tight, dst[:n])) {
			t.Fatalf("%d bytes in room for %d, %d are needed", m, room, n)
		} else if m == 0 && room == n {
			t.Fatalf("%d bytes do not fit into as many", n)
		}
	})
}

// The first bytes come again just too far behind them.
//
// Fails if lz4Window is 1<<16.
func TestLZ4Window(t *testing.T) {
	src := append([]byte("unlikely"), make([]byte, 1<<16-8)...)
	src[1<<16-1] = 'x'
	src = append(src, "unlikely and so on, to the end of the block"...)
	dst := make([]byte, len(src))
	n := new(lz4Table).compress(dst, src)
	if out, err := readLZ4(dst[:n]); err != nil || !bytes.Equal(out, src) {
		t.Errorf("other bytes: %v", err)
	}
}

func FuzzLZ4(f *testing.F) {
	f.Add([]byte("region region region region"), 100)
	f.Fuzz(func(t *testing.T, src []byte, room int) {
		dst := make([]byte, min(max(room, 0), 2*len(src)+16))
		n := new(lz4Table).compress(dst, src)
		if n == 0 {
			return
		}
		if out, err := readLZ4(dst[:n]); err != nil || !bytes.Equal(out, src) {
			t.Fatalf("other bytes: %v", err)
		}
	})
}

// BenchmarkLZ4 compresses blocks of a data file: ours, and for comparison those of
// the library.
func BenchmarkLZ4(b *testing.B) {
	for _, x := range []struct {
		data string
		fill func(data []byte, number uint64)
	}{{"pattern", record.SetPattern}, {"words", words}, {"noise", noise}} {
		blocks := make([][]byte, 64) // so many that nobody knows them by heart
		r := record.Record{Data: record.NewPattern(100 - record.HeaderSize)}
		for i := range blocks {
			for n := uint64(i * 400); len(blocks[i]) < 32<<10; n++ {
				r.Number, r.Key = n, record.Mix(n)
				x.fill(r.Data, r.Key%(1<<14))
				at := len(blocks[i])
				blocks[i] = append(blocks[i], make([]byte, r.Size())...)
				r.Put(blocks[i][at:])
			}
		}
		dst := make([]byte, len(blocks[0]))
		run := func(name string, compress func(dst, src []byte) int) {
			b.Run(x.data+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(dst)))
				var in, out int
				for i := range b.N {
					in += len(dst)
					out += compress(dst, blocks[i%len(blocks)])
				}
				b.ReportMetric(float64(in)/float64(out), "ratio")
			})
		}
		run("ours", new(lz4Table).compress)
		var c lz4.Compressor
		run("library", func(dst, src []byte) int {
			n, err := c.CompressBlock(src, dst)
			if err != nil {
				b.Fatal(err)
			}
			return n
		})
	}
}
