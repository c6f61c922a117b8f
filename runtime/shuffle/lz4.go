package shuffle

import "math/bits"

// lz4Table compresses blocks. It remembers, by the hash of what stands there, where
// in a block it stood, and is small enough for the first cache of a core: the
// matches that a larger one would find are not worth what its misses cost.
type lz4Table [1 << lz4Bits]uint16

const (
	lz4Bits = 13
	// lz4Window is how far a block is gone through before all is forgotten: places
	// and distances have 16 bits, and two places are looked at in a turn.
	lz4Window = 1<<16 - 1

	lz4MinMatch = 4
	// The format wants the last bytes of a block to be literals, and the last match
	// to begin some bytes before the end.
	lz4LastLiterals = 5
	lz4LastMatch    = 12
)

// lz4Hash is that of the lowest five bytes.
func lz4Hash(x uint64) uint64 { return x << 24 * 889523592379 >> (64 - lz4Bits) }

// compress writes src as an LZ4 block to dst and returns its length; 0: it does
// not fit.
func (t *lz4Table) compress(dst, src []byte) int {
	clear(t[:])
	at, anchor := 0, 0 // in dst; of src: behind the last match
	base := 0          // what places count from
	last := len(src) - lz4LastMatch
	for s := 1; s < last; {
		if s-base >= lz4Window {
			clear(t[:])
			base = s
			s++
			continue
		}
		x := le.Uint64(src[s:])
		h := lz4Hash(x)
		from := base + int(t[h])
		t[h] = uint16(s - base)
		// A place that was never set is 0, which is one to look at like any other.
		if uint32(x) != le.Uint32(src[from:]) {
			x >>= 8
			h = lz4Hash(x)
			s++
			from = base + int(t[h])
			t[h] = uint16(s - base)
			if uint32(x) != le.Uint32(src[from:]) {
				s += 1 + (s-anchor)>>5 // the longer in vain, the larger the steps
				continue
			}
		}
		for s > anchor && from > 0 && src[s-1] == src[from-1] {
			s--
			from--
		}
		end := lz4Extend(src, from+lz4MinMatch, s+lz4MinMatch)
		literals, n := s-anchor, end-s-lz4MinMatch
		if literals < 15 && n < 15 && at+19 <= len(dst) { // nearly all sequences
			d := dst[at : at+19 : at+19]
			d[0] = byte(literals<<4 | n)
			// Sixteen bytes are copied faster than fewer; what is too much is written
			// over.
			le.PutUint64(d[1:], le.Uint64(src[anchor:]))
			if literals > 8 {
				le.PutUint64(d[9:], le.Uint64(src[anchor+8:]))
			}
			le.PutUint16(d[1+literals:], uint16(s-from))
			at += 3 + literals
		} else {
			var ok bool
			if at, ok = lz4Emit(dst, at, src[anchor:s], s-from, n); !ok {
				return 0
			}
		}
		anchor = end
		if end >= last {
			break
		}
		// What the match went over is not looked at, but for one place near its end.
		t[lz4Hash(le.Uint64(src[end-2:]))] = uint16(end - 2 - base)
		s = end
	}
	literals := src[anchor:]
	n, ok := lz4Length(dst, at+1, len(literals))
	if !ok || n+len(literals) > len(dst) {
		return 0
	}
	dst[at] = byte(min(len(literals), 15) << 4)
	return n + copy(dst[n:], literals)
}

// lz4Extend is the end of the match whose parts are equal before from and to.
func lz4Extend(src []byte, from, to int) int {
	end := len(src) - lz4LastLiterals
	for to+8 <= end {
		if d := le.Uint64(src[to:]) ^ le.Uint64(src[from:]); d != 0 {
			return to + bits.TrailingZeros64(d)>>3
		}
		to += 8
		from += 8
	}
	for to < end && src[to] == src[from] {
		to++
		from++
	}
	return to
}

// lz4Emit writes a sequence: literals, then a match at a distance, whose length is
// n more than the least.
func lz4Emit(dst []byte, at int, literals []byte, distance, n int) (int, bool) {
	token := at
	at, ok := lz4Length(dst, at+1, len(literals))
	if !ok || at+len(literals)+2 > len(dst) {
		return 0, false
	}
	at += copy(dst[at:], literals)
	le.PutUint16(dst[at:], uint16(distance))
	at, ok = lz4Length(dst, at+2, n)
	dst[token] = byte(min(len(literals), 15)<<4 | min(n, 15))
	return at, ok
}

// lz4Length writes what a length is beyond the largest that the token holds.
func lz4Length(dst []byte, at, n int) (int, bool) {
	for n -= 15; n >= 0 && at < len(dst); n -= 255 {
		dst[at] = byte(min(n, 255))
		at++
	}
	return at, n < 0 && at <= len(dst)
}
