package shuffle

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Verify checks a finished partition on the disk: its index, and the frame of its
// data file; with full every block, too. What is wrong is ErrPartitionLost.
func (s *Store) Verify(id PartitionID, full bool) error {
	p, err := s.find(id, Range{})
	if err != nil {
		return err
	}
	if err := s.verify(p, full); err != nil {
		if shortage(err) {
			return fmt.Errorf("shuffle: partition %s: %w", id, err)
		}
		return lostError(id, Range{0, p.head.subs - 1}, err)
	}
	return nil
}

func (s *Store) verify(p *partition, full bool) error {
	x, bytes, _, err := s.checkFiles(p.ID)
	if err != nil {
		return err
	}
	defer x.close()
	if x.crc != p.Checksum || x.identity != p.identity {
		return errors.New("the index has changed")
	}
	if !full {
		return nil
	}
	f, err := openData(s.root, p.ID, p.identity, p.length)
	if err != nil {
		return err
	}
	defer f.Close()
	v := verifier{f: f, x: x, buf: make([]byte, s.c.SegmentSize), raw: make([]byte, x.head.block)}
	defer v.dec.close()
	row := make([]byte, entrySize)
	at := int64(x.head.size())
	for region := range x.tail.regions {
		for sub := range x.head.subs {
			place := int64(region)*int64(x.head.subs) + int64(sub)
			if _, err := x.f.ReadAt(row, x.rows()+place*entrySize); err != nil {
				return err
			}
			var e entry
			if err := e.get(row, x.identity, place); err != nil {
				return err
			}
			if e.offset != at {
				return fmt.Errorf("damaged index: subpartition %d of region %d is at %d, not behind the one before at %d", sub, region, e.offset, at)
			}
			n, err := v.blocks(&e)
			if err != nil {
				return err
			}
			bytes[sub] -= n
			at += int64(e.bytes)
		}
	}
	for sub, n := range bytes {
		if n != 0 {
			return fmt.Errorf("damaged index: subpartition %d lacks %d bytes", sub, n)
		}
	}
	if at != p.length-dataFooter {
		return fmt.Errorf("%d bytes of the data belong to no region", p.length-dataFooter-at)
	}
	return nil
}

// verifier reads the blocks of a data file one by one.
type verifier struct {
	f   io.ReaderAt
	x   *index
	buf []byte
	raw []byte
	dec decoder
}

// blocks checks the blocks of an entry and counts their raw bytes.
func (v *verifier) blocks(e *entry) (raw int64, err error) {
	crc := v.x.identity
	for at, end := e.offset, e.offset+int64(e.bytes); at < end; {
		b := v.buf[:min(int64(len(v.buf)), end-at)]
		if _, err := v.f.ReadAt(b, at); err != nil {
			return 0, err
		}
		for from := 0; from < len(b); {
			i, ok, err := readBlock(&v.x.head, v.x.identity, at, b[from:])
			if err != nil {
				return 0, err
			}
			if !ok {
				if from == 0 {
					return 0, fmt.Errorf("torn block at %d", at)
				}
				break
			}
			body := b[from+blockHead : from+blockHead+i.stored]
			if i.compressed {
				if err := v.dec.decode(v.x.head.codec, v.raw[:i.raw], body); err != nil {
					return 0, fmt.Errorf("damaged block at %d: %w", at, err)
				}
			}
			crc = crc32.Update(crc, castagnoli, b[from:from+blockHead])
			raw += int64(i.raw)
			from += blockHead + i.stored
			at += int64(blockHead + i.stored)
		}
	}
	if crc != e.crc {
		return 0, fmt.Errorf("damaged data: checksum of the blocks at %d is %08x, want %08x", e.offset, crc, e.crc)
	}
	return raw, nil
}
