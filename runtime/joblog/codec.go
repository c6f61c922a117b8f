package joblog

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// appendPayload encodes an event. Numbers are varints, strings and byte rows
// carry their length, lists their count.
func appendPayload(b []byte, e Event) ([]byte, error) {
	w := encoder{b}
	switch e := e.(type) {
	case VertexFinished:
		w.attempt(e.Attempt)
		w.str(e.Worker)
		w.signed(e.Records)
		w.signed(e.BytesIn)
		w.num(len(e.Results))
		for _, r := range e.Results {
			w.str(r.DataSet)
			w.num(len(r.Bytes))
			for _, n := range r.Bytes {
				w.signed(n)
			}
		}
		w.num(len(e.Splits))
		for _, s := range e.Splits {
			w.str(s)
		}
		w.flag(e.Snapshotted)
		w.num(len(e.Snapshots))
		for _, s := range e.Snapshots {
			w.snapshot(s)
		}
	case VerticesReset:
		w.num(len(e.Tasks))
		for _, t := range e.Tasks {
			w.task(t)
		}
	case JobVertexInitialized:
		w.str(e.Vertex)
		w.num(e.Parallelism)
		w.num(len(e.Inputs))
		for _, in := range e.Inputs {
			w.str(in.DataSet)
			w.num(len(in.Subtasks))
			for _, r := range in.Subtasks {
				w.num(r.FirstPartition)
				w.num(r.LastPartition)
				w.num(r.FirstSubpartition)
				w.num(r.LastSubpartition)
			}
		}
	case CoordinatorSnapshot:
		w.snapshot(e.Snapshot)
	case EpochStarted:
		w.unsigned(e.Epoch)
		w.num(len(e.Kept))
		for _, a := range e.Kept {
			w.attempt(a)
		}
	case WorkerSet:
		w.num(len(e.Workers))
		for _, s := range e.Workers {
			w.str(s)
		}
	case JobFinished:
		w.str(e.Status)
		w.str(e.Error)
	default:
		return b, fmt.Errorf("job log: no format for event %T", e)
	}
	return w.b, nil
}

// decodePayload is the inverse of appendPayload. The event shares no memory
// with b.
func decodePayload(k Kind, b []byte) (Event, error) {
	r := decoder{b: b}
	var e Event
	switch k {
	case KindVertexFinished:
		v := VertexFinished{Attempt: r.attempt(), Worker: r.str(), Records: r.signed(), BytesIn: r.signed()}
		v.Results = list(&r, func() Result {
			return Result{DataSet: r.str(), Bytes: list(&r, r.signed)}
		})
		v.Splits = list(&r, r.str)
		v.Snapshotted = r.flag()
		v.Snapshots = list(&r, r.snapshot)
		e = v
	case KindVerticesReset:
		e = VerticesReset{Tasks: list(&r, r.task)}
	case KindJobVertexInitialized:
		v := JobVertexInitialized{Vertex: r.str(), Parallelism: r.num()}
		v.Inputs = list(&r, func() InputInfo {
			return InputInfo{DataSet: r.str(), Subtasks: list(&r, func() InputRange {
				return InputRange{r.num(), r.num(), r.num(), r.num()}
			})}
		})
		if v.Parallelism < 1 {
			r.fail(fmt.Errorf("parallelism %d of vertex %q", v.Parallelism, v.Vertex))
		}
		e = v
	case KindCoordinatorSnapshot:
		e = CoordinatorSnapshot{r.snapshot()}
	case KindEpochStarted:
		e = EpochStarted{Epoch: r.unsigned(), Kept: list(&r, r.attempt)}
	case KindWorkerSet:
		e = WorkerSet{Workers: list(&r, r.str)}
	case KindJobFinished:
		e = JobFinished{Status: r.str(), Error: r.str()}
	default:
		return nil, fmt.Errorf("unknown event type %d", uint8(k))
	}
	if r.err == nil && len(r.b) > 0 {
		r.err = fmt.Errorf("%d bytes too many", len(r.b))
	}
	if r.err != nil {
		return nil, fmt.Errorf("payload of %s: %w", k, r.err)
	}
	return e, nil
}

type encoder struct{ b []byte }

func (w *encoder) unsigned(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *encoder) signed(n int64)    { w.b = binary.AppendVarint(w.b, n) }
func (w *encoder) num(n int)         { w.signed(int64(n)) }
func (w *encoder) str(s string)      { w.num(len(s)); w.b = append(w.b, s...) }
func (w *encoder) task(t TaskID)     { w.str(t.Vertex); w.num(t.Subtask) }
func (w *encoder) flag(f bool) {
	if f {
		w.num(1)
	} else {
		w.num(0)
	}
}
func (w *encoder) attempt(a AttemptID) { w.task(a.TaskID); w.unsigned(a.Epoch); w.num(a.Attempt) }
func (w *encoder) snapshot(s Snapshot) {
	w.str(s.Operator)
	w.num(len(s.Data))
	w.b = append(w.b, s.Data...)
}

var errShort = errors.New("it ends too early")

// decoder remembers its first error and returns zeros from then on.
type decoder struct {
	b   []byte
	err error
}

func (r *decoder) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b = nil
}

func (r *decoder) unsigned() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *decoder) signed() int64 {
	n, k := binary.Varint(r.b)
	if k <= 0 {
		r.fail(errShort)
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *decoder) num() int { return int(r.signed()) }

func (r *decoder) bytes() []byte {
	n := r.num()
	if n < 0 || n > len(r.b) {
		r.fail(errShort)
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *decoder) str() string  { return string(r.bytes()) }
func (r *decoder) task() TaskID { return TaskID{Vertex: r.str(), Subtask: r.num()} }
func (r *decoder) flag() bool   { return r.num() != 0 }

func (r *decoder) attempt() AttemptID {
	return AttemptID{TaskID: r.task(), Epoch: r.unsigned(), Attempt: r.num()}
}

func (r *decoder) snapshot() Snapshot {
	return Snapshot{Operator: r.str(), Data: append([]byte(nil), r.bytes()...)}
}

// list reads a count and so many elements, each at least a byte long: a wrong
// count cannot ask for more memory than the payload is worth.
func list[T any](r *decoder, element func() T) []T {
	n := r.num()
	if n < 0 || n > len(r.b) {
		r.fail(errShort)
		return nil
	}
	if n == 0 {
		return nil
	}
	out := make([]T, 0, n)
	for range n {
		out = append(out, element())
	}
	return out
}
