package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Restore reads the blocks of those groups that lie in the backend's range;
// offsets count from the start of src. It may be called once for each of
// several snapshots that hold different groups. Tables come to be as they are
// met. After an error the backend must not be used. Damage is a
// *CorruptError.
func (b *Backend) Restore(src io.ReaderAt, groups []GroupOffset) error {
	var buf []byte
	for _, g := range groups {
		if g.Group < b.first || g.Group > b.last || g.Length == 0 {
			continue
		}
		if b.restored[g.Group-b.first] {
			return fmt.Errorf("keyed state of key group %d is restored twice", g.Group)
		}
		b.restored[g.Group-b.first] = true
		if g.Length < blockHeader+blockTrailer || g.Length > maxBlock {
			return &CorruptError{g.Group, fmt.Sprintf("a block of %d bytes", g.Length)}
		}
		if int64(cap(buf)) < g.Length {
			buf = make([]byte, g.Length)
		}
		buf = buf[:g.Length]
		if n, err := src.ReadAt(buf, g.Offset); n < len(buf) {
			if errors.Is(err, io.EOF) {
				return &CorruptError{g.Group, fmt.Sprintf("%d of %d bytes are there", n, len(buf))}
			}
			return fmt.Errorf("read keyed state of key group %d: %w", g.Group, err)
		}
		if err := b.restoreBlock(g.Group, buf); err != nil {
			return err
		}
	}
	return nil
}

// maxBlock bounds what a damaged length can make us ask for.
const maxBlock = 1 << 40

// restoreBlock reads the block of one key group.
func (b *Backend) restoreBlock(group int, block []byte) error {
	corrupt := func(format string, args ...any) error {
		return &CorruptError{group, fmt.Sprintf(format, args...)}
	}
	body := block[:len(block)-blockTrailer]
	if string(block[:2]) != blockMagic {
		return corrupt("it begins with %q, not with %q", block[:2], blockMagic)
	}
	if got, want := checksum(body), binary.LittleEndian.Uint32(block[len(body):]); got != want {
		return corrupt("checksum %08x does not match the recorded %08x", got, want)
	}
	if v := binary.LittleEndian.Uint16(block[2:]); v != blockVersion {
		return corrupt("format version %d; this program reads version %d", v, blockVersion)
	}
	if g := binary.LittleEndian.Uint32(block[4:]); int(g) != group {
		return corrupt("it is the block of key group %d", g)
	}
	if n := binary.LittleEndian.Uint64(block[8:]); n != uint64(len(body)-blockHeader) {
		return corrupt("it has %d bytes of state, %d are recorded", len(body)-blockHeader, n)
	}
	r := blockReader{b: body[blockHeader:]}
	for len(r.b) > 0 && !r.short {
		kind := r.byte()
		name := string(r.take(int(r.uint16())))
		switch kind {
		case partFixed:
			width, count := r.uint32(), r.uint32()
			entries := r.take64(count, 16)
			values := r.take64(count, width)
			if r.short {
				break
			}
			t, err := b.Table(name, int(width))
			if err != nil {
				return err
			}
			for i := 0; i < int(count); i++ {
				val, _ := t.Upsert(group, binary.LittleEndian.Uint64(entries[16*i:]), binary.LittleEndian.Uint64(entries[16*i+8:]))
				copy(val, values[i*int(width):])
			}
		case partVar:
			t, err := b.VarTable(name)
			if err != nil {
				return err
			}
			for count := r.uint32(); count > 0 && !r.short; count-- {
				key, ns := r.uint64(), r.uint64()
				val := r.take64(r.uint32(), 1)
				if !r.short {
					t.Put(group, key, ns, val)
				}
			}
		case partTimers:
			for count := r.uint32(); count > 0 && !r.short; count-- {
				t := Timer{Time: int64(r.uint64()), Key: r.uint64(), NS: r.uint64()}
				if !r.short {
					b.timers.Register(group, t)
				}
			}
		default:
			return corrupt("a part of unknown kind %d", kind)
		}
	}
	if r.short {
		return corrupt("a part reaches beyond the end")
	}
	return nil
}

// blockReader takes fields off a block; beyond the end they are zero and short
// is set.
type blockReader struct {
	b     []byte
	short bool
}

func (r *blockReader) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short = true
		r.b = nil
		return nil
	}
	p := r.b[:n]
	r.b = r.b[n:]
	return p
}

func (r *blockReader) take64(count, width uint32) []byte {
	n := uint64(count) * uint64(width)
	if n > uint64(len(r.b)) {
		r.short = true
		r.b = nil
		return nil
	}
	return r.take(int(n))
}

func (r *blockReader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

func (r *blockReader) uint16() uint16 {
	if p := r.take(2); p != nil {
		return binary.LittleEndian.Uint16(p)
	}
	return 0
}

func (r *blockReader) uint32() uint32 {
	if p := r.take(4); p != nil {
		return binary.LittleEndian.Uint32(p)
	}
	return 0
}

func (r *blockReader) uint64() uint64 {
	if p := r.take(8); p != nil {
		return binary.LittleEndian.Uint64(p)
	}
	return 0
}
