package shuffle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

const (
	version    = 1
	dataMagic  = "BRSHDAT\n"
	indexMagic = "BRSHIDX\n"
	dataEnd    = "BRSHDEN\n"
	indexEnd   = "BRSHIEN\n"

	fixedHead   = 40 // a header without names and crc
	dataFooter  = 24
	indexFooter = 36
	blockHead   = 12
	entrySize   = 24
	totalSize   = 16

	compressedBit = 1 << 31
	// maxNames bounds the names in a header; see maxName.
	maxNames = 2*maxName + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var le = binary.LittleEndian

// header begins both files of a partition.
type header struct {
	id    PartitionID
	codec Codec
	subs  int
	block int // most raw bytes of a block
}

// append writes the header and returns the identity, its checksum.
func (h *header) append(b []byte, magic string) ([]byte, uint32) {
	names := h.id.Job + "\x00" + h.id.Dataset
	at := len(b)
	b = append(b, magic...)
	b = le.AppendUint16(b, version)
	b = append(b, byte(h.codec), 0)
	b = le.AppendUint64(b, h.id.Epoch)
	b = le.AppendUint32(b, uint32(h.id.Index))
	b = le.AppendUint32(b, uint32(h.id.Attempt))
	b = le.AppendUint32(b, uint32(h.subs))
	b = le.AppendUint32(b, uint32(h.block))
	b = le.AppendUint32(b, uint32(len(names)))
	b = append(b, names...)
	// The magic differs between the two files; the identity does not.
	identity := crc32.Checksum(b[at+8:], castagnoli)
	return le.AppendUint32(b, identity), identity
}

func (h *header) size() int { return fixedHead + len(h.id.Job) + 1 + len(h.id.Dataset) + 4 }

var errTorn = errors.New("the file is shorter than its header")

// readHeader reads what append wrote from the start of a file.
func readHeader(b []byte, magic string) (h header, identity uint32, err error) {
	if len(b) < fixedHead+4 {
		return h, 0, errTorn
	}
	if string(b[:8]) != magic {
		return h, 0, fmt.Errorf("it begins with %q, not with %q", b[:8], magic)
	}
	if v := le.Uint16(b[8:]); v != version {
		return h, 0, fmt.Errorf("format version %d, known is %d", v, version)
	}
	n := int(le.Uint32(b[36:]))
	if n > maxNames {
		return h, 0, fmt.Errorf("damaged header: names of %d bytes", n)
	}
	if len(b) < fixedHead+n+4 {
		return h, 0, errTorn
	}
	names := string(b[fixedHead : fixedHead+n])
	identity = le.Uint32(b[fixedHead+n:])
	if crc := crc32.Checksum(b[8:fixedHead+n], castagnoli); crc != identity {
		return h, 0, fmt.Errorf("damaged header: checksum %08x, want %08x", crc, identity)
	}
	h.codec = Codec(b[10])
	h.id.Epoch = le.Uint64(b[12:])
	h.id.Index, h.id.Attempt = int(le.Uint32(b[20:])), int(le.Uint32(b[24:]))
	h.subs, h.block = int(le.Uint32(b[28:])), int(le.Uint32(b[32:]))
	h.id.Job, h.id.Dataset, _ = strings.Cut(names, "\x00")
	return h, identity, nil
}

// appendDataFooter closes a data file of n bytes.
func appendDataFooter(b []byte, n int64, identity uint32) []byte {
	at := len(b)
	b = le.AppendUint64(b, uint64(n))
	b = le.AppendUint32(b, identity)
	b = le.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
	return append(b, dataEnd...)
}

func checkDataFooter(b []byte, n int64, identity uint32) error {
	if len(b) != dataFooter || string(b[16:]) != dataEnd {
		return errors.New("torn data file: no footer")
	}
	if crc := crc32.Checksum(b[:12], castagnoli); crc != le.Uint32(b[12:]) || le.Uint64(b) != uint64(n) || le.Uint32(b[8:]) != identity {
		return errors.New("damaged footer of the data file")
	}
	return nil
}

// entry is where one subpartition is in one region.
type entry struct {
	offset  int64
	bytes   uint32 // in the file
	records uint32
	crc     uint32 // of the heads of its blocks
}

// seed begins a checksum that is good in one place only. A CRC maps different
// beginnings to different ends.
func seed(identity uint32, place int64) uint32 {
	return identity ^ uint32(place) ^ uint32(place>>32)*0x9e3779b1
}

// append writes the entry; place is that of seed: region * subpartitions + subpartition.
func (e *entry) append(b []byte, identity uint32, place int64) []byte {
	at := len(b)
	b = le.AppendUint64(b, uint64(e.offset))
	b = le.AppendUint32(b, e.bytes)
	b = le.AppendUint32(b, e.records)
	b = le.AppendUint32(b, e.crc)
	return le.AppendUint32(b, crc32.Update(seed(identity, place), castagnoli, b[at:]))
}

func (e *entry) get(b []byte, identity uint32, place int64) error {
	b = b[:entrySize]
	if crc := crc32.Update(seed(identity, place), castagnoli, b[:20]); crc != le.Uint32(b[20:]) {
		return errors.New("damaged index entry")
	}
	e.offset, e.bytes, e.records, e.crc = int64(le.Uint64(b)), le.Uint32(b[8:]), le.Uint32(b[12:]), le.Uint32(b[16:])
	return nil
}

// tail is what an index ends with.
type tail struct {
	regions   int
	watermark int64
	data      int64 // length of the data file
}

// append closes an index; crc is that of everything before.
func (t *tail) append(b []byte, crc uint32) ([]byte, uint32) {
	at := len(b)
	b = le.AppendUint32(b, uint32(t.regions))
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, uint64(t.watermark))
	b = le.AppendUint64(b, uint64(t.data))
	crc = crc32.Update(crc, castagnoli, b[at:])
	b = le.AppendUint32(b, crc)
	return append(b, indexEnd...), crc
}

func (t *tail) get(b []byte) (crc uint32, err error) {
	if len(b) != indexFooter || string(b[28:]) != indexEnd {
		return 0, errors.New("torn index: no footer")
	}
	t.regions, t.watermark, t.data = int(le.Uint32(b)), int64(le.Uint64(b[8:])), int64(le.Uint64(b[16:]))
	return le.Uint32(b[24:]), nil
}

// blockCRC is the checksum of a block: the first eight bytes of its head, and its
// stored bytes.
func blockCRC(identity uint32, offset int64, head, stored []byte) uint32 {
	return crc32.Update(crc32.Update(seed(identity, offset), castagnoli, head[:8]), castagnoli, stored)
}

// blockInfo is a block's head.
type blockInfo struct {
	stored, raw int
	compressed  bool
}

// readBlock checks the block at the start of b, which begins at offset in the
// file. ok is false when b ends within it.
func readBlock(h *header, identity uint32, offset int64, b []byte) (i blockInfo, ok bool, err error) {
	if len(b) < blockHead {
		return i, false, nil
	}
	raw := le.Uint32(b[4:])
	i = blockInfo{stored: int(le.Uint32(b)), raw: int(raw &^ compressedBit), compressed: raw&compressedBit != 0}
	if i.raw == 0 || i.raw > h.block || i.stored > i.raw || i.compressed != (i.stored < i.raw) {
		return i, false, fmt.Errorf("damaged block at %d: %d bytes in %d", offset, i.raw, i.stored)
	}
	if len(b) < blockHead+i.stored {
		return i, false, nil
	}
	if crc := blockCRC(identity, offset, b[:8], b[blockHead:blockHead+i.stored]); crc != le.Uint32(b[8:]) {
		return i, false, fmt.Errorf("damaged block at %d: checksum %08x, want %08x", offset, crc, le.Uint32(b[8:]))
	}
	return i, true, nil
}
