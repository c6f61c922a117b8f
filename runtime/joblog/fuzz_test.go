package joblog

import (
	"bytes"
	"testing"
)

// FuzzDecodePayload: any bytes are refused or mean an event that is written the
// same way each time. Fails if a length is not checked against what is there.
func FuzzDecodePayload(f *testing.F) {
	for _, e := range events() {
		b, err := appendPayload(nil, e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(e.Kind()), b)
	}
	f.Fuzz(func(t *testing.T, kind uint8, b []byte) {
		e, err := decodePayload(Kind(kind), b)
		if err != nil {
			return
		}
		once, err := appendPayload(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		again, err := decodePayload(Kind(kind), once)
		if err != nil {
			t.Fatalf("%+v cannot be read again: %v", e, err)
		}
		if twice, _ := appendPayload(nil, again); !bytes.Equal(once, twice) {
			t.Fatalf("%+v is written in two ways", e)
		}
	})
}
