package exchange

import (
	"encoding/binary"
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
)

const (
	smallFrame = 9  // type, channel, n
	dataHeader = 20 // type, kind, 2 spare, channel, backlog, length, crc
	maxKey     = 1 << 10
	maxMessage = 1 << 16
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendSmall(b []byte, kind byte, channel uint32, n int) []byte {
	b = append(b, kind)
	b = binary.LittleEndian.AppendUint32(b, channel)
	return binary.LittleEndian.AppendUint32(b, uint32(n))
}

// header is the start of every frame from producer to consumer.
type header struct {
	kind    byte
	channel uint32
	backlog int
	length  int
	crc     uint32
}

func (h *header) put(b *[dataHeader]byte) {
	b[0], b[1], b[2], b[3] = h.kind, 0, 0, 0
	binary.LittleEndian.PutUint32(b[4:], h.channel)
	binary.LittleEndian.PutUint32(b[8:], uint32(h.backlog))
	binary.LittleEndian.PutUint32(b[12:], uint32(h.length))
	binary.LittleEndian.PutUint32(b[16:], h.crc)
}

func (h *header) get(b *[dataHeader]byte) {
	h.kind = b[0]
	h.channel = binary.LittleEndian.Uint32(b[4:])
	h.backlog = int(binary.LittleEndian.Uint32(b[8:]))
	h.length = int(binary.LittleEndian.Uint32(b[12:]))
	h.crc = binary.LittleEndian.Uint32(b[16:])
}
