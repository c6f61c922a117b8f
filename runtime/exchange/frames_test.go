package exchange

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := header{
			kind: rapid.Byte().Draw(t, "kind"), channel: rapid.Uint32().Draw(t, "channel"), backlog: int(rapid.Uint32().Draw(t, "backlog")),
			length: int(rapid.Uint32().Draw(t, "length")), crc: rapid.Uint32().Draw(t, "crc"),
		}
		var b [dataHeader]byte
		in.put(&b)
		var out header
		if err := out.get(&b); err != nil || out != in {
			t.Fatalf("%+v became %+v, %v", in, out, err)
		}
	})
}

// A single flipped bit of a header is found, wherever it is: the effect of a bit
// on a CRC does not depend on the others, so one header stands for all.
func TestHeaderWithFlippedBit(t *testing.T) {
	var b [dataHeader]byte
	(&header{kind: frameData, channel: 3, backlog: 7, length: 4096, crc: 0x12345678}).put(&b)
	small := appendSmall(nil, frameCredit, 3, 2)
	for bit := range 8 * dataHeader {
		bad := b
		bad[bit/8] ^= 1 << (bit % 8)
		if err := new(header).get(&bad); err == nil {
			t.Errorf("flipped bit %d of a header passes", bit)
		}
		if bit >= 8*len(small) {
			continue
		}
		less := bytes.Clone(small)
		less[bit/8] ^= 1 << (bit % 8)
		if intact(less) == nil {
			t.Errorf("flipped bit %d of a small frame passes", bit)
		}
	}
}

// Whatever comes in, the client and the server say what is wrong and go on.
func FuzzClientFrames(f *testing.F) {
	var ok [dataHeader]byte
	(&header{kind: frameEvent, length: 44}).put(&ok)
	f.Add(ok[:])
	(&header{kind: frameError, length: 1 << 30}).put(&ok)
	f.Add(ok[:])
	f.Fuzz(func(t *testing.T, in []byte) {
		c := &Client{channels: []*remoteChannel{nil}}
		r := bufio.NewReader(bytes.NewReader(in))
		var h header
		for {
			var hb [dataHeader]byte
			if n, _ := r.Read(hb[:]); n < len(hb) {
				return
			}
			seal(hb[:])
			if h.get(&hb) != nil {
				t.Fatal("a sealed header is refused")
			}
			if c.frame(r, &h) != nil {
				return
			}
		}
	})
}

func FuzzServerFrames(f *testing.F) {
	f.Add(appendRequest(nil, 1, "0/a->b#0/1", 2, 3))
	f.Add(appendSmall(nil, frameCancel, 1, 0))
	f.Fuzz(func(t *testing.T, in []byte) {
		s := &Server{}
		s.mu.pending = map[string][]*view{}
		c := &serverConn{server: s, views: map[uint32]*view{}, wake: make(chan struct{}, 1)}
		r := bufio.NewReader(bytes.NewReader(in))
		for {
			var b [smallFrame]byte
			if n, _ := r.Read(b[:]); n < len(b) {
				return
			}
			if c.frame(r, b[0], uint32(b[4]), int(b[8])|int(b[9])<<8) != nil {
				return
			}
		}
	})
}

func TestKeyTooLong(t *testing.T) {
	c := &Client{wake: make(chan struct{}, 1)}
	if err := c.request(&remoteChannel{}, strings.Repeat("x", maxKey+1), 0, 0); err == nil {
		t.Error("a key that the server would refuse was sent")
	}
}
