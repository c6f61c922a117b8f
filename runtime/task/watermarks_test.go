package task

import (
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/graph"
	"benchrun/runtime/inflight"
	"benchrun/runtime/operator"
	"benchrun/runtime/record"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/state"
)

// flowing is a source of several splits and its consumer, of which one subtask
// is looked at. Times of a split ascend; a watermark of a subtask is behind all
// of its splits.
type flowing struct {
	t       *rapid.T
	clock   []int64 // next time of each split
	readers [][]int // splits of each subtask
}

// emit draws an element of a subtask: a record of one of its splits, a
// watermark, or a status.
func (f *flowing) emit(u int) []byte {
	mine := f.readers[u]
	if len(mine) == 0 || rapid.IntRange(0, 9).Draw(f.t, "status") == 0 {
		b := make([]byte, record.StatusSize)
		record.PutStatus(b, len(mine) > 0)
		return b
	}
	if rapid.IntRange(0, 2).Draw(f.t, "watermark") == 0 {
		least := record.MaxWatermark
		for _, s := range mine {
			least = min(least, f.clock[s])
		}
		b := make([]byte, record.WatermarkSize)
		record.PutWatermark(b, least-1)
		return b
	}
	s := rapid.SampledFrom(mine).Draw(f.t, "split")
	r := record.Record{Time: f.clock[s]}
	f.clock[s] += rapid.Int64Range(1, 20).Draw(f.t, "step")
	b := make([]byte, r.Size())
	r.Put(b)
	return b
}

// checkpoint describes one of the job, with some bytes in flight.
func (f *flowing) checkpoint(up, down int) *snapshot.Metadata {
	m := &snapshot.Metadata{Checkpoint: 1, Edges: []snapshot.EdgeState{{ID: "a->b#0", From: "a", To: "b", Partitioner: string(graph.Rebalance)}}}
	for i, p := range []int{up, down} {
		id := string(rune('a' + i))
		v := snapshot.VertexState{ID: id, Parallelism: p, MaxParallelism: 128, Operators: []string{id}}
		for s := range p {
			v.Subtasks = append(v.Subtasks, snapshot.SubtaskState{Subtask: s, Files: []string{"file"}})
		}
		if i == 1 {
			v.Subtasks[0].Inputs = []snapshot.ChannelState{{Bytes: 1, Extents: []snapshot.Extent{{Length: 1}}}}
		}
		m.Vertices = append(m.Vertices, v)
	}
	return m
}

// listening is an operator that remembers the watermark.
type listening struct {
	operator.Operator
	mark int64
}

func (l *listening) Watermark(t int64) error {
	l.mark = t
	return nil
}

// Whatever was in flight when a job was rescaled, and whoever has a split since
// then: no record comes behind the watermark that its task was told (INV-7).
//
// Fails if Plan.continues answers true, or if Demux.HeldBack takes the largest.
func TestNoRecordIsLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		par := rapid.IntRange(1, 3)
		oldUp, oldDown, up, down := par.Draw(t, "old up"), par.Draw(t, "old down"), par.Draw(t, "up"), par.Draw(t, "down")
		splits := rapid.IntRange(1, 5).Draw(t, "splits")
		f := &flowing{t: t, clock: make([]int64, splits), readers: make([][]int, oldUp)}
		for s := range splits {
			f.clock[s] = rapid.Int64Range(0, 100).Draw(t, "start")
			f.readers[s%oldUp] = append(f.readers[s%oldUp], s)
		}
		streams := map[inflight.Label][]byte{}
		for range rapid.IntRange(0, 30).Draw(t, "in flight") {
			u := rapid.IntRange(0, oldUp-1).Draw(t, "subtask")
			l := inflight.Label{Up: int32(u), Down: int32(rapid.IntRange(0, oldDown-1).Draw(t, "to"))}
			streams[l] = append(streams[l], f.emit(u)...)
		}
		f.readers = state.Redistribute(f.readers, state.Split, up)

		g, err := graph.Build(graph.Job{
			Nodes: []graph.Node{{ID: "a", Parallelism: up, MaxParallelism: 128, Source: true}, {ID: "b", Parallelism: down, MaxParallelism: 128}},
			Links: []graph.Link{{From: "a", To: "b", Partitioner: graph.Rebalance}},
		}, graph.Config{})
		if err != nil {
			t.Fatal(err)
		}
		plan, err := inflight.NewPlan(f.checkpoint(oldUp, oldDown), g, inflight.PathDownstream)
		if err != nil {
			t.Fatal(err)
		}
		op := &listening{mark: record.MinWatermark}
		task := &Task{valve: newValve(up), chain: &chain{ops: []*chained{{op: op}}}}
		in := &input{des: make([]record.Deserializer, up)}
		take := func(ch int, body []byte, recovered bool) {
			if body[0] != record.TagRecord {
				if err := task.mark(ch, body, recovered); err != nil {
					t.Fatal(err)
				}
				return
			}
			var r record.Record
			if r.Get(body); r.Time <= op.mark {
				t.Fatalf("record of time %d, recovered: %v, on channel %d behind watermark %d", r.Time, recovered, ch, op.mark)
			}
		}
		a := plan.Gate(0, rapid.IntRange(0, down-1).Draw(t, "of"))
		demux := inflight.NewDemux(a, up, 0, down, 128)
		left := make([]int, up) // virtual channels that are not drained
		for _, v := range a.Virtual {
			left[v.Channel]++
		}
		live := func() {
			u := rapid.IntRange(0, up-1).Draw(t, "reader")
			if left[u] == 0 { // what is made for others does not matter
				take(u, f.emit(u)[4:], false)
			}
		}
		for _, v := range a.Virtual {
			if err := demux.Select(v.Label); err != nil {
				t.Fatal(err)
			}
			demux.Feed(streams[v.Label])
			for {
				body, err := demux.Next()
				if err != nil {
					t.Fatal(err)
				}
				if body == nil {
					break
				}
				take(v.Channel, body, true)
				live()
			}
			left[v.Channel]--
		}
		if err := task.releaseWatermark(in, demux); err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 40).Draw(t, "live") {
			live()
		}
	})
}

// A channel that was idle when its data were stored is not idle for that reason:
// who sends on it now says nothing while it is active.
//
// Fails if Task.mark takes restored statuses for new ones.
func TestRestoredStatusesDoNotCount(t *testing.T) {
	op := &listening{mark: record.MinWatermark}
	task := &Task{valve: newValve(2), chain: &chain{ops: []*chained{{op: op}}}}
	var idle [record.StatusSize]byte
	record.PutStatus(idle[:], false)
	for i, x := range []struct {
		ch   int
		body []byte
		want int64
	}{
		{1, idle[4:], record.MinWatermark},
		{0, markBody(10), record.MinWatermark},
		{1, markBody(5), 5},
	} {
		if err := task.mark(x.ch, x.body, x.body[0] == record.TagStatus); err != nil {
			t.Fatal(err)
		}
		if op.mark != x.want {
			t.Errorf("step %d: watermark %d, want %d", i, op.mark, x.want)
		}
	}
}

func markBody(w int64) []byte {
	b := make([]byte, record.WatermarkSize)
	record.PutWatermark(b, w)
	return b[4:]
}
