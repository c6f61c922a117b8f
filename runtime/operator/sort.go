package operator

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"benchrun/runtime/record"
)

// sortMemory is what a sort may hold if its context names nothing.
const sortMemory = 16 << 20

// mergeBuffer is the memory of one run while runs are merged; it bounds how
// many are merged at a time.
const mergeBuffer = 32 << 10

// sorter emits its input in the order of key, source, number and copy when the
// input has ended. What does not fit its memory is sorted in runs, which are
// files without a name: they vanish with their descriptor.
type sorter struct {
	base
	cost  cost
	limit int

	mem  []byte // serialised records
	refs []sortRef
	runs []*os.File
	out  record.Record
}

// sortRef is a record in memory.
type sortRef struct {
	key uint64
	at  int
}

func (o *sorter) Open(c *Context) error {
	o.c = c
	if o.limit = c.Memory; o.limit <= 0 {
		o.limit = sortMemory
	}
	return nil
}

const refSize = 16

func (o *sorter) Process(_ int, r *record.Record) error {
	o.cost.charge(o.c)
	n := r.Size()
	if len(o.refs) > 0 && len(o.mem)+n+(len(o.refs)+1)*refSize > o.limit {
		if err := o.spill(); err != nil {
			return err
		}
	}
	at := len(o.mem)
	o.mem = slices.Grow(o.mem, n)[:at+n]
	r.Put(o.mem[at:])
	o.refs = append(o.refs, sortRef{r.Key, at})
	return nil
}

// body is a record in memory without its length.
func (o *sorter) body(at int) []byte {
	n := int(binary.LittleEndian.Uint32(o.mem[at:]))
	return o.mem[at+4 : at+4+n]
}

// compareBodies orders serialised records.
func compareBodies(a, b []byte) int {
	var x, y record.Record
	x.Get(a)
	y.Get(b)
	return cmp.Or(cmp.Compare(x.Key, y.Key), cmp.Compare(x.Source, y.Source), cmp.Compare(x.Number, y.Number), cmp.Compare(x.Copy, y.Copy))
}

func (o *sorter) order() {
	slices.SortStableFunc(o.refs, func(a, b sortRef) int {
		if c := cmp.Compare(a.key, b.key); c != 0 {
			return c
		}
		return compareBodies(o.body(a.at), o.body(b.at))
	})
}

// spill writes what is in memory as a run, and merges runs when there are too
// many to be merged in the end.
func (o *sorter) spill() error {
	o.order()
	f, err := o.run(func(w *bufio.Writer) error {
		for _, r := range o.refs {
			n := int(binary.LittleEndian.Uint32(o.mem[r.at:]))
			if _, err := w.Write(o.mem[r.at : r.at+4+n]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	o.runs = append(o.runs, f)
	o.mem, o.refs = o.mem[:0], o.refs[:0]
	if len(o.runs) < max(2, o.limit/mergeBuffer) {
		return nil
	}
	f, err = o.run(func(w *bufio.Writer) error {
		return o.merge(func(body []byte) error {
			var n [4]byte
			binary.LittleEndian.PutUint32(n[:], uint32(len(body)))
			if _, err := w.Write(n[:]); err != nil {
				return err
			}
			_, err := w.Write(body)
			return err
		})
	})
	if err != nil {
		return err
	}
	o.closeRuns()
	o.runs = append(o.runs, f)
	return nil
}

// run writes a run.
func (o *sorter) run(fill func(w *bufio.Writer) error) (*os.File, error) {
	f, err := os.CreateTemp(o.c.SpillDir, "sort-*")
	if err != nil {
		return nil, fmt.Errorf("operator %s: spill: %w", o.c.ID, err)
	}
	w := bufio.NewWriterSize(f, mergeBuffer)
	err = os.Remove(f.Name())
	if err == nil {
		err = fill(w)
	}
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("operator %s: spill: %w", o.c.ID, err)
	}
	return f, nil
}

// Finish emits everything.
func (o *sorter) Finish() error {
	emit := func(body []byte) error {
		o.out.Get(body)
		return o.c.Out.Emit(&o.out)
	}
	if len(o.runs) == 0 {
		o.order()
		for _, r := range o.refs {
			if err := emit(o.body(r.at)); err != nil {
				return err
			}
		}
	} else {
		if len(o.refs) > 0 {
			if err := o.spill(); err != nil {
				return err
			}
		}
		o.mem = nil
		if err := o.merge(emit); err != nil {
			return err
		}
	}
	o.mem, o.refs = nil, nil
	o.closeRuns()
	return nil
}

// cursor is the next record of a run.
type cursor struct {
	r    *bufio.Reader
	body []byte
	run  int
}

func (c *cursor) next() (bool, error) {
	var n [4]byte
	if _, err := io.ReadFull(c.r, n[:]); errors.Is(err, io.EOF) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	size := int(binary.LittleEndian.Uint32(n[:]))
	c.body = slices.Grow(c.body[:0], size)[:size]
	_, err := io.ReadFull(c.r, c.body)
	return err == nil, err
}

type cursors []*cursor

func (h cursors) Len() int      { return len(h) }
func (h cursors) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h cursors) Push(x any)    { panic("sort: cursors are only taken away") }
func (h cursors) Less(i, j int) bool {
	return cmp.Or(compareBodies(h[i].body, h[j].body), cmp.Compare(h[i].run, h[j].run)) < 0
}

func (h *cursors) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}

// merge calls fn with the records of all runs in order.
func (o *sorter) merge(fn func(body []byte) error) error {
	var h cursors
	for i, f := range o.runs {
		c := &cursor{r: bufio.NewReaderSize(f, mergeBuffer), run: i}
		ok, err := c.next()
		if err != nil {
			return fmt.Errorf("operator %s: read run %d: %w", o.c.ID, i, err)
		}
		if ok {
			h = append(h, c)
		}
	}
	heap.Init(&h)
	for len(h) > 0 {
		c := h[0]
		if err := fn(c.body); err != nil {
			return err
		}
		ok, err := c.next()
		if err != nil {
			return fmt.Errorf("operator %s: read run %d: %w", o.c.ID, c.run, err)
		}
		if ok {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	return nil
}

func (o *sorter) closeRuns() {
	for _, f := range o.runs {
		f.Close()
	}
	o.runs = nil
}

func (o *sorter) Close() error {
	o.closeRuns()
	return nil
}
