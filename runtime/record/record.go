package record

import (
	"encoding/binary"
	"fmt"
)

// Tags of elements in a byte stream.
const (
	TagRecord    = 0
	TagWatermark = 1
	TagStatus    = 2
)

const (
	// HeaderSize is the serialised size in bytes of a record without data.
	HeaderSize = 44
	// MaxElement bounds the serialised size of one element.
	MaxElement = 64 << 20
	// WatermarkSize and StatusSize are the serialised sizes of those elements.
	WatermarkSize = 13
	StatusSize    = 6
)

// MaxWatermark says that no record with a time is going to follow.
const MaxWatermark = int64(1<<63 - 1)

// MinWatermark is the watermark of an input that has not sent one.
const MinWatermark = -int64(1<<63 - 1)

// Record is one record. (Source, Number, Copy) is its identity through the
// whole job: the source vertex that made it, its number there, and which of
// several records made from one it is.
//
// Data belongs to whoever handed the record out and is valid only until the
// call that passed it returns.
type Record struct {
	Key    uint64
	Number uint64
	Time   int64 // event time in ms
	Value  int64
	Copy   uint32
	Source uint16
	Flags  uint8
	Data   []byte
}

// Size is the number of bytes that the record takes in a stream.
func (r *Record) Size() int { return HeaderSize + len(r.Data) }

// Put writes the record to the first Size bytes of b, which must have room.
func (r *Record) Put(b []byte) {
	w := b[:HeaderSize:HeaderSize]
	binary.LittleEndian.PutUint32(w[0:], uint32(HeaderSize-4+len(r.Data)))
	binary.LittleEndian.PutUint32(w[4:], uint32(r.Flags)<<8|uint32(r.Source)<<16)
	binary.LittleEndian.PutUint32(w[8:], r.Copy)
	binary.LittleEndian.PutUint64(w[12:], r.Key)
	binary.LittleEndian.PutUint64(w[20:], r.Number)
	binary.LittleEndian.PutUint64(w[28:], uint64(r.Time))
	binary.LittleEndian.PutUint64(w[36:], uint64(r.Value))
	if len(r.Data) > 0 {
		copy(b[HeaderSize:], r.Data)
	}
}

// Get reads a record from body, the bytes of a frame after its length. Data
// aliases body.
func (r *Record) Get(body []byte) {
	w := body[: HeaderSize-4 : len(body)]
	v := binary.LittleEndian.Uint32(w[0:])
	r.Flags, r.Source = uint8(v>>8), uint16(v>>16)
	r.Copy = binary.LittleEndian.Uint32(w[4:])
	r.Key = binary.LittleEndian.Uint64(w[8:])
	r.Number = binary.LittleEndian.Uint64(w[16:])
	r.Time = int64(binary.LittleEndian.Uint64(w[24:]))
	r.Value = int64(binary.LittleEndian.Uint64(w[32:]))
	r.Data = body[HeaderSize-4:]
}

// BodyKey reads only the key of a serialised record body.
func BodyKey(body []byte) uint64 { return binary.LittleEndian.Uint64(body[8:]) }

// PutWatermark writes a watermark to the first WatermarkSize bytes of b.
func PutWatermark(b []byte, t int64) {
	binary.LittleEndian.PutUint32(b, WatermarkSize-4)
	b[4] = TagWatermark
	binary.LittleEndian.PutUint64(b[5:], uint64(t))
}

// WatermarkTime reads the time from a watermark's body.
func WatermarkTime(body []byte) int64 { return int64(binary.LittleEndian.Uint64(body[1:])) }

// PutStatus writes a watermark status to the first StatusSize bytes of b.
func PutStatus(b []byte, active bool) {
	binary.LittleEndian.PutUint32(b, StatusSize-4)
	b[4], b[5] = TagStatus, 0
	if active {
		b[5] = 1
	}
}

// CheckBody tells whether body can be an element.
func CheckBody(body []byte) error {
	if len(body) == 0 {
		return fmt.Errorf("corrupt stream: empty element")
	}
	want := 0
	switch body[0] {
	case TagRecord:
		if len(body) < HeaderSize-4 {
			return fmt.Errorf("corrupt stream: record of %d bytes, a header alone has %d", len(body), HeaderSize-4)
		}
		return nil
	case TagWatermark:
		want = WatermarkSize - 4
	case TagStatus:
		want = StatusSize - 4
	default:
		return fmt.Errorf("corrupt stream: element with unknown tag %d", body[0])
	}
	if len(body) != want {
		return fmt.Errorf("corrupt stream: element with tag %d has %d bytes, want %d", body[0], len(body), want)
	}
	return nil
}
