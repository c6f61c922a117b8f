package task

import (
	"fmt"
	"io"
	"sync"

	"benchrun/runtime/inflight"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/state"
	"benchrun/runtime/storage"
)

// Restore is a checkpoint that an execution starts from, shared by all its
// tasks on a worker: what several of them need is read once.
type Restore struct {
	Store  storage.Store
	Folder string
	Meta   *snapshot.Metadata
	Plan   *inflight.Plan // nil: in-flight data are not restored
	Files  *inflight.Files

	mu    sync.Mutex
	lists map[listKey]*redistributed
}

type listKey struct {
	operator, name string
	parallelism    int
}

type redistributed struct {
	done  chan struct{} // closed when it was loaded
	mode  snapshot.ListMode
	items [][][]byte // by new subtask
	err   error
}

// Forget drops what was shared while tasks restored.
func (r *Restore) Forget() {
	r.mu.Lock()
	r.lists = nil
	r.mu.Unlock()
}

// find returns the states of an operator by old subtask, wherever in the old
// job it was chained; ok is false if the checkpoint does not know it.
func (r *Restore) find(operator string) (v *snapshot.VertexState, states []*snapshot.OperatorState, ok bool) {
	for i := range r.Meta.Vertices {
		v = &r.Meta.Vertices[i]
		for _, id := range v.Operators {
			if id != operator {
				continue
			}
			for s := range v.Subtasks {
				for o := range v.Subtasks[s].Operators {
					if x := &v.Subtasks[s].Operators[o]; x.Operator == operator {
						states = append(states, x)
					}
				}
			}
			return v, states, true
		}
	}
	return nil, nil, false
}

// keyed fills a backend with its key groups and returns the bytes read.
func (r *Restore) keyed(operator string, b *state.Backend) (n int64, err error) {
	_, states, _ := r.find(operator)
	for _, s := range states {
		for k := range s.Keyed {
			h := &s.Keyed[k]
			if h.Last() < b.First() || h.First > b.Last() {
				continue
			}
			m, err := r.groups(h, b)
			if err != nil {
				return n, fmt.Errorf("keyed state of operator %s: %w", operator, err)
			}
			n += m
		}
	}
	return n, nil
}

func (r *Restore) groups(h *snapshot.KeyGroupHandle, b *state.Backend) (n int64, err error) {
	src, c, err := snapshot.OpenHandle(r.Store, r.Folder, &h.Handle)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var groups []state.GroupOffset
	for g := max(h.First, b.First()); g <= min(h.Last(), b.Last()); g++ {
		off, length, ok := h.Group(g)
		if ok && length > 0 {
			groups = append(groups, state.GroupOffset{Group: g, Offset: off, Length: length})
			n += length
		}
	}
	return n, b.Restore(io.ReaderAt(src), groups)
}

// list fills the list states of an operator for one new subtask.
func (r *Restore) list(operator string, subtask, parallelism int, lists *state.Lists) (n int64, err error) {
	_, states, _ := r.find(operator)
	names := map[string]bool{}
	for _, s := range states {
		for _, h := range s.List {
			names[h.Name] = true
		}
	}
	for name := range names {
		d, mine := r.share(operator, name, parallelism)
		if mine {
			d.load(r, name, states, parallelism)
			close(d.done)
		}
		<-d.done
		if d.err != nil {
			return n, fmt.Errorf("list state %q of operator %s: %w", name, operator, d.err)
		}
		l, err := lists.Get(name, state.Mode(d.mode))
		if err != nil {
			return n, err
		}
		l.Items = append(l.Items, d.items[subtask]...)
		for _, it := range l.Items {
			n += int64(len(it))
		}
	}
	return n, nil
}

// share finds what several subtasks need; mine tells the first one to load it.
func (r *Restore) share(operator, name string, parallelism int) (d *redistributed, mine bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists == nil {
		r.lists = map[listKey]*redistributed{}
	}
	k := listKey{operator, name, parallelism}
	if d = r.lists[k]; d != nil {
		return d, false
	}
	d = &redistributed{done: make(chan struct{})}
	r.lists[k] = d
	return d, true
}

func (d *redistributed) load(r *Restore, name string, states []*snapshot.OperatorState, parallelism int) {
	var old [][][]byte
	for _, s := range states {
		var items [][]byte
		for i := range s.List {
			h := &s.List[i]
			if h.Name != name {
				continue
			}
			d.mode = h.Mode
			b, err := snapshot.ReadHandle(r.Store, r.Folder, &h.Handle)
			if err == nil {
				items, err = state.DecodeItems(b)
			}
			if err != nil {
				d.err = err
				return
			}
		}
		old = append(old, items)
	}
	d.items = state.Redistribute(old, state.Mode(d.mode), parallelism)
}
