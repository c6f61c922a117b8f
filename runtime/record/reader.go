package record

import (
	"encoding/binary"
	"fmt"
)

// Deserializer cuts one channel's byte stream into elements. It owns the
// bytes of an element that is not complete yet; the buffer being read belongs
// to the caller, who must keep it until Next has returned false.
//
// The zero value is ready to use.
type Deserializer struct {
	cur     []byte // unread rest of the buffer being read
	partial []byte // start of an element whose rest has not arrived
}

// Feed hands over the next bytes of the stream. The bytes fed before must have
// been read to their end.
func (d *Deserializer) Feed(b []byte) { d.cur = b }

// Next returns the body of the next complete element, or nil when more bytes
// are needed. The body is valid until the next call of Next or Feed.
func (d *Deserializer) Next() ([]byte, error) {
	if len(d.partial) == 0 {
		if len(d.cur) < 4 {
			d.save()
			return nil, nil
		}
		n := int(binary.LittleEndian.Uint32(d.cur))
		if n > MaxElement || n == 0 {
			return nil, fmt.Errorf("corrupt stream: element of %d bytes", n)
		}
		if len(d.cur) < 4+n {
			d.save()
			return nil, nil
		}
		body := d.cur[4 : 4+n : 4+n]
		d.cur = d.cur[4+n:]
		return body, nil
	}
	return d.nextSpanning()
}

func (d *Deserializer) save() {
	d.partial = append(d.partial, d.cur...)
	d.cur = nil
}

func (d *Deserializer) nextSpanning() ([]byte, error) {
	for len(d.partial) < 4 {
		if len(d.cur) == 0 {
			return nil, nil
		}
		n := min(4-len(d.partial), len(d.cur))
		d.partial = append(d.partial, d.cur[:n]...)
		d.cur = d.cur[n:]
	}
	n := int(binary.LittleEndian.Uint32(d.partial))
	if n > MaxElement || n == 0 {
		return nil, fmt.Errorf("corrupt stream: element of %d bytes", n)
	}
	need := 4 + n - len(d.partial)
	if take := min(need, len(d.cur)); take > 0 {
		d.partial = append(d.partial, d.cur[:take]...)
		d.cur = d.cur[take:]
		need -= take
	}
	if need > 0 {
		return nil, nil
	}
	body := d.partial[4:]
	if cap(d.partial) > 1<<20 {
		d.partial = nil // one huge record must not pin its memory
	} else {
		d.partial = d.partial[:0]
	}
	return body, nil
}

// Leftover are the bytes that were fed but not yet handed out as an element:
// the start of a spanning element and the unread rest of the current buffer.
// A checkpoint stores them ahead of what is queued.
func (d *Deserializer) Leftover() (partial, rest []byte) { return d.partial, d.cur }

// Empty tells whether the stream stands at an element boundary with nothing
// left to read.
func (d *Deserializer) Empty() bool { return len(d.partial) == 0 && len(d.cur) == 0 }

// Reset forgets all bytes.
func (d *Deserializer) Reset() { d.cur, d.partial = nil, nil }
