package shuffle

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What comes out of an encoder goes back, is never longer, and saves an eighth or
// is left alone. Blocks that cannot be compressed switch trying off for a while, and
// no longer than that.
//
// Fails if encode tries every block, if the pause has no limit, or if what saves too
// little is kept.
func TestEncoder(t *testing.T) {
	for _, codec := range []Codec{None, LZ4, Zstd} {
		rapid.Check(t, func(t *rapid.T) {
			e, err := newEncoder(codec)
			if err != nil {
				t.Fatal(err)
			}
			defer e.close()
			var d decoder
			defer d.close()
			for range rapid.IntRange(1, 5).Draw(t, "blocks") {
				src := bytes.Repeat(rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "piece"), rapid.IntRange(1, 40).Draw(t, "times"))
				dst, raw := make([]byte, len(src)), make([]byte, len(src))
				n, err := e.encode(dst, src)
				if err != nil || n > len(src)-len(src)/8 {
					t.Fatalf("%v: %d bytes of %d: %v", codec, n, len(src), err)
				}
				if n == 0 {
					continue
				}
				if err := d.decode(codec, raw, dst[:n]); err != nil || !bytes.Equal(raw, src) {
					t.Fatalf("%v: a block does not come back: %v", codec, err)
				}
			}
		})
	}
	noise := make([]byte, 4<<10)
	for i, rnd := 0, seeded(t); i < len(noise); i++ {
		noise[i] = byte(rnd.Uint32())
	}
	good := bytes.Repeat([]byte("records "), 512)
	for _, codec := range []Codec{LZ4, Zstd} {
		e, err := newEncoder(codec)
		if err != nil {
			t.Fatal(err)
		}
		var tried, done []int
		dst := make([]byte, len(noise))
		for i := range 60 {
			src := noise
			if i >= 40 {
				src = good
			}
			if e.left == 0 {
				tried = append(tried, i)
			}
			n, err := e.encode(dst, src)
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				done = append(done, i)
			}
		}
		e.close()
		if want := []int{0, 2, 6, 14, 30, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59}; !slices.Equal(tried, want) {
			t.Errorf("%v: tried %v, want %v", codec, tried, want)
		}
		if !slices.Equal(done, tried[5:]) {
			t.Errorf("%v: compressed %v", codec, done)
		}
	}
}
