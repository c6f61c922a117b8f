package source

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// BatchCheckpoint is the id of snapshots that are taken outside checkpoints, of
// the coordinators of batch jobs.
const BatchCheckpoint = -1

// FlinkSnapshots tells whether the enumerator of Flink's counterpart of a source
// says that it can be snapshotted outside a checkpoint. Its file source does not,
// so what is to behave as Flink does must not snapshot ours, which could.
func FlinkSnapshots(operator string) bool { return operator != Lines }

// BatchSnapshot gives the coordinator's state outside a checkpoint. Unlike that
// of a checkpoint it holds who has which splits: readers of a batch job have no
// state of their own. The tracker stays as it is, so that a subtask that is
// reset gives its splits back.
//
//	length of the coordinator's state (4) · that state
//	subtasks (varint), each: subtask (varint), length (varint), splits as the
//	enumerator writes them
func (c *Coordinator) BatchSnapshot() []byte {
	state := c.encode()
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(state)))
	b = append(b, state...)
	b = binary.AppendUvarint(b, uint64(len(c.tracker.uncheckpointed)))
	for _, s := range slices.Sorted(maps.Keys(c.tracker.uncheckpointed)) {
		splits := encodeNumbered(number(c.tracker.uncheckpointed[s]))
		b = binary.AppendUvarint(b, uint64(s))
		b = binary.AppendUvarint(b, uint64(len(splits)))
		b = append(b, splits...)
	}
	return b
}

func (c *Coordinator) decodeBatch(b []byte) (e Enumerator, assigned map[int][]Split, err error) {
	bad := func() (Enumerator, map[int][]Split, error) {
		return nil, nil, fmt.Errorf("batch snapshot of a coordinator is cut, %d bytes from its end", len(b))
	}
	if len(b) < 4 || int64(binary.LittleEndian.Uint32(b)) > int64(len(b)-4) {
		return bad()
	}
	n := int(binary.LittleEndian.Uint32(b))
	if e, err = c.decode(b[4 : 4+n]); err != nil {
		return nil, nil, err
	}
	b = b[4+n:]
	uvarint := func() (uint64, bool) {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return v, true
	}
	count, ok := uvarint()
	if !ok {
		return bad()
	}
	assigned = map[int][]Split{}
	for range count {
		subtask, ok := uvarint()
		length, ok2 := uvarint()
		if !ok || !ok2 || length > uint64(len(b)) {
			return bad()
		}
		splits, err := decodeNumbered(b[:length])
		if err != nil {
			return nil, nil, err
		}
		b = b[length:]
		for _, s := range splits {
			assigned[int(subtask)] = append(assigned[int(subtask)], s.Split)
		}
	}
	return e, assigned, nil
}

// resetBatch begins from a batch snapshot, or from nothing. Every split is
// afterwards either with the enumerator or with one subtask.
func (c *Coordinator) resetBatch(e Reset) error {
	enumerator, assigned := c.kind.New(), map[int][]Split{}
	if e.State != nil {
		var err error
		if enumerator, assigned, err = c.decodeBatch(e.State); err != nil {
			return err
		}
	}
	c.begin(enumerator, e.Parallelism)
	if e.Held == nil {
		for s, splits := range assigned {
			c.tracker.assign(s, splits)
		}
		return nil
	}
	held, ids := map[string]int{}, map[string]bool{}
	for s, list := range e.Held {
		for _, id := range list {
			if other, twice := held[id]; twice {
				return fmt.Errorf("split %s is held by subtasks %d and %d", id, other, s)
			}
			held[id], ids[id] = s, true
		}
	}
	for _, s := range slices.Sorted(maps.Keys(assigned)) {
		var back []Split
		for _, x := range assigned[s] {
			if to, ok := held[x.ID]; ok {
				c.tracker.assign(to, []Split{x})
				delete(held, x.ID)
				continue
			}
			back = append(back, x)
		}
		if len(back) > 0 {
			enumerator.AddSplitsBack(back, s)
		}
	}
	for _, x := range enumerator.Take(ids) {
		if to, ok := held[x.ID]; ok {
			c.tracker.assign(to, []Split{x})
			delete(held, x.ID)
		}
	}
	if len(held) > 0 {
		return fmt.Errorf("%d splits that subtasks have are unknown, one is %q", len(held), slices.Sorted(maps.Keys(held))[0])
	}
	return nil
}

// Assigned are the splits that a subtask has been given since it was last
// reset.
func (c *Coordinator) Assigned(subtask int) []Split { return c.tracker.uncheckpointed[subtask] }
