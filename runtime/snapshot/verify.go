package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"benchrun/runtime/storage"
)

// section is a checked piece of a file.
type section struct {
	offset, length int64
	crc            uint32
}

// sections gathers what the metadata points at, by file, in order of offsets.
func sections(m *Metadata) (map[string][]section, []*Handle) {
	files := map[string][]section{}
	var inline []*Handle
	add := func(h *Handle) {
		if h.File == "" {
			inline = append(inline, h)
			return
		}
		files[h.File] = append(files[h.File], section{h.Offset, h.Length, h.CRC})
	}
	for i := range m.Vertices {
		for j := range m.Vertices[i].Subtasks {
			s := &m.Vertices[i].Subtasks[j]
			for k := range s.Operators {
				o := &s.Operators[k]
				for l := range o.Keyed {
					add(&o.Keyed[l].Handle)
				}
				for l := range o.List {
					add(&o.List[l].Handle)
				}
			}
			for _, cs := range [][]ChannelState{s.Inputs, s.Outputs} {
				for k := range cs {
					for _, e := range cs[k].Extents {
						name := s.Files[e.File]
						files[name] = append(files[name], section{e.Offset, int64(e.Length), e.CRC})
					}
				}
			}
		}
	}
	for _, f := range files {
		slices.SortFunc(f, func(a, b section) int {
			switch {
			case a.offset < b.offset:
				return -1
			case a.offset > b.offset:
				return 1
			}
			return 0
		})
	}
	return files, inline
}

// Files lists the data files that the metadata points at, relative to the
// checkpoint's folder, sorted.
func Files(m *Metadata) []string {
	files, _ := sections(m)
	names := make([]string, 0, len(files))
	for n := range files {
		names = append(names, n)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

// Check looks whether every file that the metadata points at is there and long
// enough. It reads no data. Damage is a *CorruptError.
func Check(s storage.Store, folder string, m *Metadata) error {
	return verify(s, folder, m, false)
}

// Verify is Check and compares every checksum as well, which reads all data.
func Verify(s storage.Store, folder string, m *Metadata) error {
	return verify(s, folder, m, true)
}

func verify(s storage.Store, folder string, m *Metadata, read bool) error {
	files, inline := sections(m)
	for _, h := range inline {
		if got := Checksum(h.Inline); got != h.CRC {
			return badSum(handleName(folder, h), 0, h.Length, got, h.CRC)
		}
	}
	var buf []byte
	if read {
		buf = make([]byte, 1<<20)
	}
	for _, file := range Files(m) {
		if err := verifyFile(s, path.Join(folder, file), files[file], buf); err != nil {
			return err
		}
	}
	return nil
}

func verifyFile(s storage.Store, name string, parts []section, buf []byte) error {
	r, err := s.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return &CorruptError{File: name, Reason: "it is missing"}
		}
		return fmt.Errorf("verify checkpoint: %w", err)
	}
	defer r.Close()
	var end int64
	for _, p := range parts {
		end = max(end, p.offset+p.length)
	}
	if r.Size() < end {
		return tooShort(name, r.Size(), end)
	}
	if buf == nil {
		return nil
	}
	for _, p := range parts {
		var crc uint32
		for done := int64(0); done < p.length; {
			n := min(int64(len(buf)), p.length-done)
			if _, err := r.ReadAt(buf[:n], p.offset+done); err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("verify checkpoint file %s: %w", name, err)
			}
			crc = crc32.Update(crc, castagnoli, buf[:n])
			done += n
		}
		if crc != p.crc {
			return badSum(name, p.offset, p.length, crc, p.crc)
		}
	}
	return nil
}
