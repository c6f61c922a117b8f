package inflight

// Labelled hands out the pieces of a gate one after the other, for the paths
// on which the task itself cuts and filters them.
type Labelled struct {
	files  *Files
	pieces []Piece
	chunk  int
	buf    []byte

	// Read counts the bytes read.
	Read int64
}

// NewLabelled reads what a gate was assigned.
func NewLabelled(f *Files, a *GateAssignment) *Labelled {
	return &Labelled{files: f, pieces: a.Pieces}
}

// Next returns the bytes of the next piece and its label; ok is false at the
// end. The bytes are valid until the next call.
func (r *Labelled) Next() (l Label, b []byte, ok bool, err error) {
	for len(r.pieces) > 0 {
		p := &r.pieces[0]
		if r.chunk == len(p.Input)+len(p.Output) {
			r.pieces, r.chunk = r.pieces[1:], 0
			continue
		}
		var c *Chunk
		if r.chunk < len(p.Input) {
			c = &p.Input[r.chunk]
		} else {
			c = &p.Output[r.chunk-len(p.Input)]
		}
		r.chunk++
		if cap(r.buf) < int(c.Length) {
			r.buf = make([]byte, c.Length)
		}
		b = r.buf[:c.Length]
		if err := r.files.Read(c, b); err != nil {
			return l, nil, false, err
		}
		r.Read += int64(c.Length)
		return p.Label, b, true, nil
	}
	r.buf = nil
	return l, nil, false, nil
}
