package exchange

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Frame types, consumer to producer.
const (
	frameRequest byte = iota + 1
	frameCredit
	frameResume
	frameCancel
)

// Frame types, producer to consumer.
const (
	frameData byte = iota + 16
	frameEvent
	frameBacklog
	frameError
	frameReturn
	frameLost // an error: what the channel reads is gone
)

const (
	smallFrame  = 12 // type, check, channel, n
	requestTail = 12 // credit, subpartition, crc
	dataHeader  = 20 // type, check, channel, backlog, length, crc
	maxKey      = 1 << 10
	maxMessage  = 1 << 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal puts the check of a frame's head, all of b, into its bytes 1 to 3.
// Sockets have checksums of their own, but one that lets a bit slip through
// must not turn into a wrong record, a lost barrier, or a wait for ever.
func seal(b []byte) {
	b[1], b[2], b[3] = 0, 0, 0
	c := crc32.Checksum(b, castagnoli)
	b[1], b[2], b[3] = byte(c), byte(c>>8), byte(c>>16)
}

// intact undoes seal.
func intact(b []byte) error {
	x, y, z := b[1], b[2], b[3]
	if seal(b); b[1] != x || b[2] != y || b[3] != z {
		return fmt.Errorf("damaged frame: check %02x%02x%02x, want %02x%02x%02x", z, y, x, b[3], b[2], b[1])
	}
	return nil
}

func appendSmall(b []byte, kind byte, channel uint32, n int) []byte {
	at := len(b)
	b = append(b, kind, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, channel)
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	seal(b[at:])
	return b
}

// appendRequest appends the frame that asks for a subpartition.
func appendRequest(b []byte, channel uint32, key string, credit, subpartition int) []byte {
	b = appendSmall(b, frameRequest, channel, len(key))
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(credit))
	b = binary.LittleEndian.AppendUint32(b, uint32(subpartition))
	b = append(b, key...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// header is the start of every frame from producer to consumer.
type header struct {
	kind    byte
	channel uint32
	backlog int
	length  int
	crc     uint32 // of the payload
}

func (h *header) put(b *[dataHeader]byte) {
	b[0] = h.kind
	binary.LittleEndian.PutUint32(b[4:], h.channel)
	binary.LittleEndian.PutUint32(b[8:], uint32(h.backlog))
	binary.LittleEndian.PutUint32(b[12:], uint32(h.length))
	binary.LittleEndian.PutUint32(b[16:], h.crc)
	seal(b[:])
}

func (h *header) get(b *[dataHeader]byte) error {
	if err := intact(b[:]); err != nil {
		return err
	}
	h.kind = b[0]
	h.channel = binary.LittleEndian.Uint32(b[4:])
	h.backlog = int(binary.LittleEndian.Uint32(b[8:]))
	h.length = int(binary.LittleEndian.Uint32(b[12:]))
	h.crc = binary.LittleEndian.Uint32(b[16:])
	return nil
}
