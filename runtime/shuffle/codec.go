package shuffle

import (
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Codec says how the blocks of a data file are compressed.
type Codec uint8

// Codecs. Their numbers are part of the format.
const (
	None Codec = iota
	LZ4
	Zstd
)

var codecNames = [...]string{"none", "lz4", "zstd"}

func (c Codec) String() string {
	if int(c) < len(codecNames) {
		return codecNames[c]
	}
	return fmt.Sprintf("codec-%d", uint8(c))
}

// ParseCodec finds a codec by its name, in capitals or not.
func ParseCodec(name string) (Codec, error) {
	for i, n := range codecNames {
		if strings.EqualFold(n, name) {
			return Codec(i), nil
		}
	}
	return None, fmt.Errorf("shuffle: unknown compression %q; known are none, lz4 and zstd: %w", name, fs.ErrInvalid)
}

// encoder compresses blocks for one writer.
type encoder struct {
	codec Codec
	lz4   *lz4Table
	zstd  *zstd.Encoder
	buf   []byte

	pause, left int // blocks to leave alone after the last one that was not worth it
}

// maxPause bounds how many blocks are not tried after some that were not worth it.
const maxPause = 15

// What compressors work with is large against a short task's output, so it goes
// from writer to writer.
var lz4Pool, zstdPool sync.Pool

func newEncoder(c Codec) (*encoder, error) {
	e := &encoder{codec: c}
	var err error
	switch c {
	case None:
	case LZ4:
		if e.lz4, _ = lz4Pool.Get().(*lz4Table); e.lz4 == nil {
			e.lz4 = new(lz4Table)
		}
	case Zstd:
		if e.zstd, _ = zstdPool.Get().(*zstd.Encoder); e.zstd == nil {
			e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
				zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(64<<10), zstd.WithEncoderCRC(false))
		}
	default:
		err = fmt.Errorf("shuffle: unknown compression %v: %w", c, fs.ErrInvalid)
	}
	return e, err
}

// encode compresses into dst, which is as long as src. 0: not worth it, which is when
// an eighth is not saved. Then the next blocks are not tried: 1, 3, 7, 15 of them
// while that goes on, so that data that no codec makes smaller cost little.
func (e *encoder) encode(dst, src []byte) (int, error) {
	if e.left > 0 {
		e.left--
		return 0, nil
	}
	n, err := e.compress(dst, src)
	if n > len(src)-len(src)/8 {
		n = 0
	}
	if n > 0 || e.codec == None {
		e.pause = 0
	} else {
		e.pause = min(2*e.pause+1, maxPause)
	}
	e.left = e.pause
	return n, err
}

func (e *encoder) compress(dst, src []byte) (int, error) {
	switch e.codec {
	case LZ4:
		return e.lz4.compress(dst, src), nil
	case Zstd:
		e.buf = e.zstd.EncodeAll(src, e.buf[:0]) // it may need more room on the way
		if len(e.buf) >= len(src) {
			return 0, nil
		}
		return copy(dst, e.buf), nil
	}
	return 0, nil
}

func (e *encoder) close() {
	if e.lz4 != nil {
		lz4Pool.Put(e.lz4)
	}
	if e.zstd != nil {
		zstdPool.Put(e.zstd)
	}
	e.lz4, e.zstd = nil, nil
}

// decoder undoes encode for one reading goroutine.
type decoder struct {
	zstd *zstd.Decoder
	buf  []byte
}

// decode fills dst, whose length is that of the raw block.
func (d *decoder) decode(c Codec, dst, src []byte) error {
	n := 0
	switch c {
	case LZ4:
		var err error
		if n, err = lz4.UncompressBlock(src, dst); err != nil {
			return err
		}
	case Zstd:
		if d.zstd == nil {
			var err error
			d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(8<<20), zstd.WithDecoderLowmem(true))
			if err != nil {
				return err
			}
		}
		var err error
		if d.buf, err = d.zstd.DecodeAll(src, d.buf[:0]); err != nil {
			return err
		}
		if n = len(d.buf); n == len(dst) {
			copy(dst, d.buf)
		}
	default:
		return fmt.Errorf("compressed block in a file with compression %v", c)
	}
	if n != len(dst) {
		return fmt.Errorf("block has %d bytes, its head says %d", n, len(dst))
	}
	return nil
}

func (d *decoder) close() {
	if d.zstd != nil {
		d.zstd.Close()
	}
}
