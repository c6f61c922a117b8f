package task

import (
	"fmt"

	"benchrun/runtime/options"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/state"
)

// frozen is the state of all operators at the barrier.
type frozen struct {
	id    string
	keyed *state.Snapshot
	first int
	lists []state.List
}

func (t *Task) freeze() []frozen {
	out := make([]frozen, 0, len(t.chain.ops))
	for _, c := range t.chain.ops {
		f := frozen{id: c.id, keyed: c.keyed.Snapshot(), first: c.keyed.First()}
		for _, l := range c.lists.All() {
			// Items are replaced, never changed, so the slice may be shared.
			f.lists = append(f.lists, *l)
		}
		out = append(out, f)
	}
	return out
}

// writeState writes the operators' state; the task goes on meanwhile.
func (p *pending) writeState(t *Task, ops []frozen) {
	name := fmt.Sprintf("state-%s-%d", t.dep.ID.Vertex, t.dep.Subtask)
	w := snapshot.NewStateWriter(t.env.Checkpoints, t.folder(&p.event), name, options.DataInlineThreshold.Get(t.dep.Values))
	states, sections, err := writeOperators(w, ops)
	for _, o := range ops {
		o.keyed.Release()
	}
	if err == nil && p.ctx.Err() != nil {
		err = p.ctx.Err()
	}
	if err != nil {
		w.Abort()
		p.failed(t, fmt.Errorf("state: %w", err))
		return
	}
	bytes := w.Bytes()
	handles, err := w.Commit()
	if err != nil {
		p.failed(t, fmt.Errorf("state: %w", err))
		return
	}
	for i, h := range sections {
		*h = handles[i]
	}
	p.durable(t, func() { p.ops, p.bytes = states, bytes })
}

// writeOperators writes one section a keyed state and a list, and returns where
// the handles of the sections go.
func writeOperators(w *snapshot.StateWriter, ops []frozen) (states []snapshot.OperatorState, sections []*snapshot.Handle, err error) {
	states = make([]snapshot.OperatorState, len(ops))
	for i, o := range ops {
		s := &states[i]
		s.Operator = o.id
		before := w.Bytes()
		groups, err := o.keyed.Write(w)
		if err != nil {
			return nil, nil, err
		}
		if w.Bytes() > before {
			w.EndSection()
			h := snapshot.KeyGroupHandle{First: o.first, Offsets: make([]int64, len(groups))}
			for k, g := range groups {
				h.Offsets[k] = g.Offset
			}
			s.Keyed = []snapshot.KeyGroupHandle{h}
			sections = append(sections, &s.Keyed[0].Handle)
		}
		s.List = make([]snapshot.ListHandle, len(o.lists))
		for k, l := range o.lists {
			if _, err := w.Write(state.AppendItems(nil, l.Items)); err != nil {
				return nil, nil, err
			}
			w.EndSection()
			s.List[k] = snapshot.ListHandle{Name: l.Name, Mode: snapshot.ListMode(l.Mode), Items: len(l.Items)}
			sections = append(sections, &s.List[k].Handle)
		}
	}
	return states, sections, nil
}
