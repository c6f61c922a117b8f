package inflight

import (
	"context"
	"encoding/binary"
)

// batch is how many bytes of elements are gathered before they are put.
const batch = 32 << 10

// Filler reads a gate's in-flight data into a Recovered queue, filtered to one
// subtask. It is the work of one goroutine beside the task's.
type Filler struct {
	Files *Files
	Gate  *GateAssignment
	Demux *Demux // nil for an identity assignment: bytes go on as they are
	Into  *Recovered

	// Read counts the bytes read.
	Read int64
	// OnFirst is called when the first bytes have been read.
	OnFirst func()
}

// Run does all of it. The queue is finished in any case.
func (f *Filler) Run(ctx context.Context) (err error) {
	defer func() { f.Into.Finish(err) }()
	var buf, out []byte
	for i := range f.Gate.Pieces {
		p := &f.Gate.Pieces[i]
		if f.Demux != nil {
			if err := f.Demux.Select(p.Label); err != nil {
				return err
			}
		}
		for k := range len(p.Input) + len(p.Output) {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			c := &p.Input
			if k >= len(p.Input) {
				c, k = &p.Output, k-len(p.Input)
			}
			chunk := &(*c)[k]
			if cap(buf) < int(chunk.Length) {
				buf = make([]byte, chunk.Length)
			}
			b := buf[:chunk.Length]
			if err := f.Files.Read(chunk, b); err != nil {
				return err
			}
			if f.Read == 0 && f.OnFirst != nil {
				f.OnFirst()
			}
			f.Read += int64(len(b))
			if f.Demux == nil {
				if err := f.Into.Put(p.Channel, b); err != nil {
					return err
				}
				continue
			}
			if out, err = f.filter(p.Channel, b, out); err != nil {
				return err
			}
		}
		if len(out) > 0 {
			if err := f.Into.Put(p.Channel, out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	if f.Demux != nil {
		return f.Demux.Empty()
	}
	return nil
}

// filter appends the elements of b that are ours to out and puts out when it
// is large.
func (f *Filler) filter(ch int, b, out []byte) ([]byte, error) {
	f.Demux.Feed(b)
	for {
		body, err := f.Demux.Next()
		if err != nil || body == nil {
			return out, err
		}
		out = binary.LittleEndian.AppendUint32(out, uint32(len(body)))
		out = append(out, body...)
		if len(out) >= batch {
			if err := f.Into.Put(ch, out); err != nil {
				return out, err
			}
			out = out[:0]
			if cap(out) > 1<<20 {
				out = nil // one huge record must not pin its memory
			}
		}
	}
}
