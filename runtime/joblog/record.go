package joblog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"strings"
)

const (
	formatVersion = 2
	frameBytes    = 40
	maxPayload    = 1 << 30
)

var (
	magic      = [4]byte{'B', 'R', 'J', 'L'}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// frame is a record as it lies in a file.
type frame struct {
	kind    Kind
	epoch   uint64
	seq     uint64
	synced  uint64 // up to this number everything was on the disk when it was written
	payload []byte

	// Where it was read.
	file   string
	offset int64
}

// beginFrame reserves the head of a record; endFrame fills it once the payload
// has been appended.
func beginFrame(b []byte) (out []byte, at int) {
	return append(b, make([]byte, frameBytes)...), len(b)
}

func endFrame(b []byte, at int, k Kind, epoch, seq, synced uint64) error {
	h, payload := b[at:at+frameBytes], b[at+frameBytes:]
	if len(payload) > maxPayload {
		return fmt.Errorf("job log: event of %d bytes, %d are the limit", len(payload), maxPayload)
	}
	copy(h, magic[:])
	h[4], h[5] = formatVersion, byte(k)
	binary.LittleEndian.PutUint64(h[8:], epoch)
	binary.LittleEndian.PutUint64(h[16:], seq)
	binary.LittleEndian.PutUint64(h[24:], synced)
	binary.LittleEndian.PutUint32(h[32:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(h[36:], checksum(h, payload))
	return nil
}

func checksum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head[:36], castagnoli), castagnoli, payload)
}

var errNoRecord = errors.New("no record begins here")

// readFrame reads the record at the start of b. The payload is shared with b.
func readFrame(b []byte) (frame, int, error) {
	switch {
	case len(b) < frameBytes:
		return frame{}, 0, fmt.Errorf("%d bytes are too few for a record", len(b))
	case [4]byte(b[:4]) != magic:
		return frame{}, 0, errNoRecord
	case b[4] != formatVersion:
		return frame{}, 0, fmt.Errorf("format version %d", b[4])
	}
	n := int64(binary.LittleEndian.Uint32(b[32:]))
	if n > int64(len(b)-frameBytes) {
		return frame{}, 0, fmt.Errorf("the record has %d bytes, %d are there", n, len(b)-frameBytes)
	}
	end := frameBytes + int(n)
	if sum := binary.LittleEndian.Uint32(b[36:]); sum != checksum(b, b[frameBytes:end]) {
		return frame{}, 0, errors.New("wrong checksum")
	}
	return frame{
		kind: Kind(b[5]), epoch: binary.LittleEndian.Uint64(b[8:]),
		seq: binary.LittleEndian.Uint64(b[16:]), synced: binary.LittleEndian.Uint64(b[24:]), payload: b[frameBytes:end],
	}, end, nil
}

// header is the first record of a file. Its frame's sequence is that of the
// record behind it. Of a file that stands for all before it, what it says was
// synced are its own records: it got its name after that.
type header struct {
	job     string
	replace bool // it stands for all files before it
}

func appendHeader(b []byte, h header, epoch, seq, synced uint64) ([]byte, error) {
	b, at := beginFrame(b)
	w := encoder{b}
	w.str(h.job)
	w.flag(h.replace)
	return w.b, endFrame(w.b, at, kindHeader, epoch, seq, synced)
}

func readHeader(f frame) (header, error) {
	if f.kind != kindHeader {
		return header{}, fmt.Errorf("the file begins with a record of type %s", f.kind)
	}
	r := decoder{b: f.payload}
	h := header{job: r.str(), replace: r.flag()}
	return h, r.err
}

const (
	filePrefix = "log."
	tempFile   = "compacting.tmp"
)

func fileName(n uint64) string { return filePrefix + strconv.FormatUint(n, 10) }

func fileNumber(name string) (uint64, bool) {
	digits, ok := strings.CutPrefix(name, filePrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && fileName(n) == name
}
