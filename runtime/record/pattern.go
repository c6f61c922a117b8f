package record

import (
	"bytes"
	"encoding/binary"
)

// Flags of records.
const (
	// FlagAggregate marks a record whose identity is its key and number.
	FlagAggregate = 1 << iota
	// FlagPattern marks a record whose data is the pattern of its number.
	FlagPattern
)

var filler = func() []byte {
	b := make([]byte, 4096)
	for i := range b {
		b[i] = byte(0xa5 ^ i*7)
	}
	return b
}()

// NewPattern returns data of n bytes that SetPattern completes for a number.
func NewPattern(n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n; i += len(filler) {
		copy(b[i:], filler)
	}
	return b
}

// SetPattern marks data of NewPattern with a number.
func SetPattern(b []byte, number uint64) {
	if len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, Mix(number^0x5851f42d4c957f2d))
	}
}

// PatternOK tells whether a record's data is the pattern of its number.
func PatternOK(r *Record) bool {
	b := r.Data
	if len(b) < 8 {
		return true
	}
	if binary.LittleEndian.Uint64(b) != Mix(r.Number^0x5851f42d4c957f2d) {
		return false
	}
	for at := 8; at < len(b); {
		off := at % len(filler)
		n := min(len(b)-at, len(filler)-off)
		if !bytes.Equal(b[at:at+n], filler[off:off+n]) {
			return false
		}
		at += n
	}
	return true
}
