package snapshot

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the CRC32C that handles and extents carry.
func Checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

const (
	metadataMagic = "BRmd"
	subtaskMagic  = "BRst"
	version       = 2
	frameHeader   = 8
	frameTrailer  = 4

	flagSavepoint = 1 << 0
	flagUnaligned = 1 << 1
)

// Encode gives the bytes of a metadata file.
//
//	body: checkpoint, epoch, triggered (8, fixed),
//	      vertices {id, parallelism, max parallelism, flags (1), operators {id, kind}, subtasks {subtask}},
//	      coordinators {operator, data},
//	      edges {id, from, to, partitioner, gate, partition},
//	      results
//
// where x {…} is a count followed by that many.
func Encode(m *Metadata) []byte {
	var flags uint16
	if m.Savepoint {
		flags |= flagSavepoint
	}
	if m.Unaligned {
		flags |= flagUnaligned
	}
	b := appendFrame(nil, metadataMagic, flags)
	b = appendUint(b, m.Checkpoint)
	b = appendUint(b, m.Epoch)
	b = binary.LittleEndian.AppendUint64(b, uint64(m.TriggeredUnixNano))
	b = appendInt(b, len(m.Vertices))
	for i := range m.Vertices {
		v := &m.Vertices[i]
		b = appendString(b, v.ID)
		b = appendInt(b, v.Parallelism)
		b = appendInt(b, v.MaxParallelism)
		b = append(b, boolByte(v.FullyFinished))
		b = appendInt(b, len(v.Operators))
		for j, o := range v.Operators {
			b = appendString(b, o)
			kind := ""
			if j < len(v.Kinds) {
				kind = v.Kinds[j]
			}
			b = appendString(b, kind)
		}
		b = appendInt(b, len(v.Subtasks))
		for j := range v.Subtasks {
			b = appendSubtask(b, &v.Subtasks[j])
		}
	}
	b = appendInt(b, len(m.Coordinators))
	for i := range m.Coordinators {
		b = appendString(b, m.Coordinators[i].Operator)
		b = appendBytes(b, m.Coordinators[i].Data)
	}
	b = appendInt(b, len(m.Edges))
	for i := range m.Edges {
		e := &m.Edges[i]
		b = appendString(b, e.ID)
		b = appendString(b, e.From)
		b = appendString(b, e.To)
		b = appendString(b, e.Partitioner)
		b = appendInt(b, e.Gate)
		b = appendInt(b, e.Partition)
	}
	b = appendBytes(b, m.Results)
	return appendTrailer(b)
}

// EncodeSubtask gives the bytes of one subtask's state, as an acknowledgement
// carries them.
func EncodeSubtask(s *SubtaskState) []byte {
	b := appendFrame(nil, subtaskMagic, 0)
	b = appendSubtask(b, s)
	return appendTrailer(b)
}

// appendSubtask:
//
//	subtask, flags (1), in-flight bytes, state bytes, files {name},
//	operators {id, keyed {handle, first, offsets {delta}}, list {name, mode (1), items, handle}},
//	inputs {channel}, outputs {channel}
//
//	channel: gate, channel, bytes, extents {file, offset, length, CRC (4)}
//
// The offset of an extent that continues where the one before it in the same
// file ended is written as 0, any other as itself + 1: most do continue.
func appendSubtask(b []byte, s *SubtaskState) []byte {
	b = appendInt(b, s.Subtask)
	b = append(b, boolByte(s.Finished))
	b = appendUint(b, s.InFlightBytes)
	b = appendUint(b, s.StateBytes)
	b = appendInt(b, len(s.Files))
	for _, f := range s.Files {
		b = appendString(b, f)
	}
	b = appendInt(b, len(s.Operators))
	for i := range s.Operators {
		o := &s.Operators[i]
		b = appendString(b, o.Operator)
		b = appendInt(b, len(o.Keyed))
		for j := range o.Keyed {
			k := &o.Keyed[j]
			b = appendHandle(b, &k.Handle)
			b = appendInt(b, k.First)
			b = appendInt(b, len(k.Offsets))
			var last int64
			for _, off := range k.Offsets {
				b = appendUint(b, off-last)
				last = off
			}
		}
		b = appendInt(b, len(o.List))
		for j := range o.List {
			l := &o.List[j]
			b = appendString(b, l.Name)
			b = append(b, byte(l.Mode))
			b = appendInt(b, l.Items)
			b = appendHandle(b, &l.Handle)
		}
	}
	var at extentCursor
	b = at.appendChannels(b, s.Inputs)
	return at.appendChannels(b, s.Outputs)
}

// extentCursor remembers where the last extent ended.
type extentCursor struct {
	file int32
	end  int64
}

func (at *extentCursor) appendChannels(b []byte, cs []ChannelState) []byte {
	b = appendInt(b, len(cs))
	for i := range cs {
		c := &cs[i]
		b = appendInt(b, c.Gate)
		b = appendInt(b, c.Channel)
		b = appendUint(b, c.Bytes)
		b = appendInt(b, len(c.Extents))
		for _, e := range c.Extents {
			b = appendInt(b, int(e.File))
			if e.File == at.file && e.Offset == at.end {
				b = append(b, 0)
			} else {
				b = appendUint(b, e.Offset+1)
			}
			b = appendInt(b, int(e.Length))
			b = binary.LittleEndian.AppendUint32(b, e.CRC)
			at.file, at.end = e.File, e.Offset+int64(e.Length)
		}
	}
	return b
}

// appendHandle: file, then inline bytes if the file is "", else offset and
// length; CRC (4).
func appendHandle(b []byte, h *Handle) []byte {
	b = appendString(b, h.File)
	if h.File == "" {
		b = appendBytes(b, h.Inline)
	} else {
		b = appendUint(b, h.Offset)
		b = appendUint(b, h.Length)
	}
	return binary.LittleEndian.AppendUint32(b, h.CRC)
}

func appendFrame(b []byte, magic string, flags uint16) []byte {
	b = append(b, magic...)
	b = binary.LittleEndian.AppendUint16(b, version)
	return binary.LittleEndian.AppendUint16(b, flags)
}

func appendTrailer(b []byte) []byte {
	return binary.LittleEndian.AppendUint32(b, Checksum(b))
}

func appendUint(b []byte, v int64) []byte { return binary.AppendUvarint(b, uint64(v)) }
func appendInt(b []byte, v int) []byte    { return binary.AppendUvarint(b, uint64(v)) }

func appendString(b []byte, s string) []byte {
	b = appendInt(b, len(s))
	return append(b, s...)
}

func appendBytes(b, s []byte) []byte {
	b = appendInt(b, len(s))
	return append(b, s...)
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}
