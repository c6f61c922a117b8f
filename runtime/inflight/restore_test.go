package inflight

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/record"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
)

const maxParallelism = 128

// edgeGraph is a job of two vertices and one edge.
func edgeGraph(t interface{ Fatal(...any) }, p graph.Partitioner, up, down int) *graph.Graph {
	g, err := graph.Build(graph.Job{
		Nodes: []graph.Node{
			{ID: "a", Parallelism: up, MaxParallelism: maxParallelism, Source: true},
			{ID: "b", Parallelism: down, MaxParallelism: maxParallelism},
		},
		Links: []graph.Link{{From: "a", To: "b", Partitioner: p}},
	}, graph.Config{ForcedUnaligned: true})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// flow is a job of one edge between two checkpoints: what is in flight, and what
// has been processed.
type flow struct {
	t           *rapid.T
	p           graph.Partitioner
	up, down    int
	store       storage.Store
	writer      *Writer
	mem         *buffer.Local // network memory
	dir         string
	meta        *snapshot.Metadata
	total       int64          // bytes of all records
	size        map[uint64]int // of each record
	processed   map[uint64]int // how often
	restoredAll int64          // bytes that all subtasks of the last restore got
	filtered    int64
}

// owners are the subtasks that may process a record.
func (j *flow) owns(r *record.Record, subtask int) bool {
	switch j.p {
	case graph.Hash, graph.Custom, graph.Global:
		return exchange.NewSelector(j.p, j.down, maxParallelism, 0).Select(r) == subtask
	default:
		return true
	}
}

// fill makes in-flight data: streams from each upstream to each downstream
// subtask, cut anywhere between what the one and the other stores.
func (j *flow) fill(records int) {
	streams := map[Label][]byte{}
	for n := range uint64(records) {
		r := record.Record{Key: rapid.Uint64Range(0, 200).Draw(j.t, "key"), Number: n, Flags: record.FlagPattern, Data: record.NewPattern(rapid.IntRange(0, 60).Draw(j.t, "size"))}
		record.SetPattern(r.Data, n)
		b := make([]byte, r.Size())
		r.Put(b)
		l := Label{Up: int32(rapid.IntRange(0, j.up-1).Draw(j.t, "up"))}
		l.Down = int32(rapid.IntRange(0, j.down-1).Draw(j.t, "down"))
		if j.p == graph.Hash || j.p == graph.Custom || j.p == graph.Global {
			l.Down = int32(exchange.NewSelector(j.p, j.down, maxParallelism, 0).Select(&r))
		}
		streams[l] = append(streams[l], b...)
		j.total += int64(len(b))
		j.size[n] = len(b)
		if rapid.IntRange(0, 5).Draw(j.t, "watermark") == 0 { // never ahead of the number
			var w [record.WatermarkSize]byte
			record.PutWatermark(w[:], int64(n))
			streams[l] = append(streams[l], w[:]...)
		}
	}
	ups, downs := make([]*Capture, j.up), make([]*Capture, j.down)
	for i := range ups {
		ups[i] = &Capture{}
	}
	for i := range downs {
		downs[i] = &Capture{}
	}
	for u := range j.up {
		for d := range j.down {
			s := streams[Label{Down: int32(d), Up: int32(u)}]
			cut := rapid.IntRange(0, len(s)).Draw(j.t, "cut")
			in := s[:cut]
			left := rapid.IntRange(0, len(in)).Draw(j.t, "leftover")
			half := rapid.IntRange(0, left).Draw(j.t, "partial")
			downs[d].AddLeftover(0, u, in[:half], in[half:left])
			downs[d].AddInput(0, u, j.buffers(in[left:]))
			ups[u].AddOutput(0, d, j.buffers(s[cut:]))
		}
	}
	j.checkpoint(ups, downs)
}

// buffers cuts bytes into pieces of any size.
func (j *flow) buffers(b []byte) (list []buffer.Buffer) {
	for len(b) > 0 {
		s := j.mem.Poll()
		n := copy(s.Mem()[:rapid.IntRange(1, len(s.Mem())).Draw(j.t, "buffer")], b)
		list = append(list, buffer.Buffer{Seg: s, Data: s.Mem()[:n]})
		b = b[n:]
	}
	return list
}

// checkpoint writes captures and describes them, subtasks in any order.
func (j *flow) checkpoint(ups, downs []*Capture) {
	id := int64(1)
	if j.meta != nil {
		id = j.meta.Checkpoint + 1
	}
	j.meta = &snapshot.Metadata{Checkpoint: id, Unaligned: true, Edges: []snapshot.EdgeState{{ID: "a->b#0", From: "a", To: "b", Partitioner: string(j.p)}}}
	for v, captures := range [][]*Capture{ups, downs} {
		vertex := snapshot.VertexState{ID: string(rune('a' + v)), Parallelism: len(captures), MaxParallelism: maxParallelism, Operators: []string{string(rune('a' + v))}}
		type answer struct {
			s   *Stored
			err error
		}
		done := make([]chan answer, len(captures))
		for i, c := range captures {
			done[i] = make(chan answer, 1)
			j.writer.Submit(context.Background(), j.store, snapshot.Folder(id), c, func(s *Stored, err error) { done[i] <- answer{s, err} })
		}
		for i := range captures {
			a := <-done[i]
			if a.err != nil {
				j.t.Fatal(a.err)
			}
			vertex.Subtasks = append(vertex.Subtasks, snapshot.SubtaskState{Subtask: i, Inputs: a.s.Inputs, Outputs: a.s.Outputs, Files: a.s.Files, InFlightBytes: a.s.Bytes})
		}
		if len(vertex.Subtasks) > 1 {
			vertex.Subtasks = rapid.Permutation(vertex.Subtasks).Draw(j.t, "order")
		}
		j.meta.Vertices = append(j.meta.Vertices, vertex)
	}
}

// process counts a record that a subtask got.
func (j *flow) process(subtask int, body []byte) {
	if body[0] != record.TagRecord {
		return
	}
	var r record.Record
	r.Get(body)
	if !record.PatternOK(&r) {
		j.t.Fatalf("record %d is damaged", r.Number)
	}
	if !j.owns(&r, subtask) {
		j.t.Fatalf("record %d of key %d came to subtask %d of %d", r.Number, r.Key, subtask, j.down)
	}
	j.processed[r.Number]++
}

func (j *flow) drain(d *Demux, subtask int) {
	for {
		body, err := d.Next()
		if err != nil {
			j.t.Fatal(err)
		}
		if body == nil {
			return
		}
		j.process(subtask, body)
	}
}

// restore brings the job back at another parallelism. On the path during, it
// may take a checkpoint at any time and leave the rest unprocessed.
func (j *flow) restore(path Path, up, down int, again bool) {
	g := edgeGraph(j.t, j.p, up, down)
	plan, err := NewPlan(j.meta, g, path)
	if err != nil {
		j.t.Fatal(err)
	}
	var inFlight int64
	for _, v := range j.meta.Vertices {
		for _, s := range v.Subtasks {
			inFlight += s.InFlightBytes
		}
	}
	if plan.Bytes() != inFlight || plan.Resends(0) != (path == PathUpstream && inFlight > 0) {
		j.t.Fatalf("plan of %d bytes, resends: %v; %d are in flight", plan.Bytes(), plan.Resends(0), inFlight)
	}
	j.up, j.down, j.filtered, j.restoredAll = up, down, 0, 0
	files := NewFiles(j.store, snapshot.Folder(j.meta.Checkpoint))
	defer files.Release()
	downs := make([]*Capture, down)
	demux := make([]*Demux, down)
	for n := range down {
		a := plan.Gate(0, n)
		downs[n] = &Capture{}
		if a == nil {
			continue
		}
		j.restoredAll += a.Bytes
		d := NewDemux(a, up, n, down, maxParallelism)
		if path == PathDuring {
			j.beside(files, a, d, n, downs[n], again)
			continue
		}
		demux[n] = d
		l := NewLabelled(files, a)
		for {
			label, b, ok, err := l.Next()
			if err != nil {
				j.t.Fatal(err)
			}
			if !ok {
				break
			}
			if err := d.Select(label); err != nil {
				j.t.Fatal(err)
			}
			d.Feed(b)
			j.drain(d, n)
		}
		if l.Read != a.Bytes {
			j.t.Fatalf("read %d bytes of %d", l.Read, a.Bytes)
		}
	}
	if path == PathUpstream {
		for u := range up {
			if a := plan.Partition(0, u); a != nil {
				j.resend(files, a, u, demux)
			}
		}
	}
	for _, d := range demux {
		if d != nil {
			if err := d.Empty(); err != nil {
				j.t.Fatal(err)
			}
			j.filtered += d.Filtered
		}
	}
	if again {
		j.checkpoint(make([]*Capture, 0), downs)
		j.meta.Vertices[0].Parallelism = up
	}
}

func (j *flow) resend(files *Files, a *PartitionAssignment, u int, demux []*Demux) {
	for _, p := range a.Pieces {
		for _, c := range p.Chunks {
			b := make([]byte, c.Length)
			if err := files.Read(&c, b); err != nil {
				j.t.Fatal(err)
			}
			for _, n := range p.Subpartitions {
				j.restoredAll += int64(len(b))
				d := demux[n]
				if err := d.SelectOn(u, p.Label); err != nil {
					j.t.Fatal(err)
				}
				if !d.Current(u) {
					j.t.Fatal("nothing is selected")
				}
				d.Feed(b)
				j.drain(d, n)
			}
		}
	}
}

// beside is the path during: a queue that is filled while the task takes from
// it, and a checkpoint at any moment.
func (j *flow) beside(files *Files, a *GateAssignment, d *Demux, n int, c *Capture, again bool) {
	if a.Identity && rapid.Bool().Draw(j.t, "identity") {
		d = nil
	}
	r := NewRecovered(j.up, j.mem, j.dir, quiet)
	f := &Filler{Files: files, Gate: a, Demux: d, Into: r}
	filled := make(chan error, 1)
	at := -1 // items to process before the checkpoint
	if again {
		at = rapid.IntRange(0, 12).Draw(j.t, "processed before the checkpoint")
	}
	go func() { filled <- f.Run(context.Background()) }()
	des := make([]record.Deserializer, j.up)
	for at != 0 {
		ch, b, ok, err := r.Next()
		if err != nil {
			j.t.Fatal(err)
		}
		if !ok {
			if r.Drained() {
				break
			}
			<-r.done
			continue
		}
		des[ch].Feed(b.Data)
		stop := again && rapid.IntRange(0, 3).Draw(j.t, "within a buffer") == 0
		for {
			if stop && rapid.Bool().Draw(j.t, "now") {
				break // the rest of it belongs to the checkpoint
			}
			body, err := des[ch].Next()
			if err != nil {
				j.t.Fatal(err)
			}
			if body == nil {
				stop = false
				break
			}
			j.process(n, body)
		}
		if at--; stop {
			for i := range des {
				c.AddLeftover(0, i, first(des[i].Leftover()), second(des[i].Leftover()))
			}
			b.Release()
			c.AddRest(0, r.Rest())
			at = -2
			break
		}
		b.Release()
	}
	if again && at != -2 {
		for i := range des {
			c.AddLeftover(0, i, first(des[i].Leftover()), second(des[i].Leftover()))
		}
		c.AddRest(0, r.Rest())
	}
	if err := <-filled; err != nil {
		j.t.Fatal(err)
	}
	if f.Read != a.Bytes {
		j.t.Fatalf("read %d bytes of %d", f.Read, a.Bytes)
	}
	if d != nil {
		j.filtered += d.Filtered
	}
	r.Close()
}

func first(a, _ []byte) []byte  { return a }
func second(_, b []byte) []byte { return b }

// left counts the bytes of records that are in flight.
func (j *flow) left() (bytes int64) {
	files := NewFiles(j.store, snapshot.Folder(j.meta.Checkpoint))
	defer files.Release()
	for _, v := range j.meta.Vertices {
		for _, s := range v.Subtasks {
			for _, c := range slices.Concat(s.Inputs, s.Outputs) {
				var stream []byte
				for _, x := range c.Extents {
					b := make([]byte, x.Length)
					if err := files.Read(&Chunk{s.Files[x.File], x}, b); err != nil {
						j.t.Fatal(err)
					}
					stream = append(stream, b...)
				}
				for len(stream) > 0 {
					n := 4 + int(binary.LittleEndian.Uint32(stream))
					if stream[4] == record.TagRecord {
						bytes += int64(n)
					}
					stream = stream[n:]
				}
			}
		}
	}
	return bytes
}

func newFlow(t *rapid.T, dir string, p graph.Partitioner, up, down int) *flow {
	g := buffer.NewGlobal(64, 4096)
	mem, err := g.NewLocal("test", 0, 4096, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("inflight-%p", mem)
	j := &flow{
		t: t, p: p, up: up, down: down, store: storage.OpenMemory(name), writer: NewWriter("w", rapid.IntRange(1, 5).Draw(t, "per file"), 2), mem: mem, dir: dir,
		size: map[uint64]int{}, processed: map[uint64]int{},
	}
	t.Cleanup(func() {
		j.writer.Close()
		storage.DropMemory(name)
		if s := g.Stats(); s.Used != 0 && !t.Failed() {
			t.Fatalf("%d segments were not released", s.Used)
		}
	})
	return j
}

var paths = []Path{PathUpstream, PathDownstream, PathDuring}

func drawPartitioner(t *rapid.T) graph.Partitioner {
	return rapid.SampledFrom([]graph.Partitioner{graph.Hash, graph.Rebalance, graph.Shuffle, graph.Global, graph.Custom}).Draw(t, "partitioner")
}

// Whatever is in flight on an edge comes back at any other parallelism, on each
// path, to exactly one subtask that may have it (INV-2, INV-3).
func TestEachRecordComesBackOnce(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		par := rapid.IntRange(1, 5)
		j := newFlow(t, dir, drawPartitioner(t), par.Draw(t, "old up"), par.Draw(t, "old down"))
		j.fill(rapid.IntRange(0, 60).Draw(t, "records"))
		j.restore(rapid.SampledFrom(paths).Draw(t, "path"), par.Draw(t, "up"), par.Draw(t, "down"), false)
		for n := range j.size {
			if j.processed[n] != 1 {
				t.Fatalf("record %d was processed %d times", n, j.processed[n])
			}
		}
	})
}

// 1 -> 10 -> 1 -> 10 -> 1, each time from a checkpoint taken somewhere in the
// middle of the recovery: what was processed and what is in flight are all
// records at any time, each once, and the bytes in flight never grow.
func TestFLIP547_CyclesDoNotMultiply(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]graph.Partitioner{graph.Hash, graph.Custom, graph.Rebalance}).Draw(t, "partitioner")
		j := newFlow(t, dir, p, rapid.IntRange(1, 2).Draw(t, "up"), 1)
		j.fill(rapid.IntRange(1, 60).Draw(t, "records"))
		for cycle := range 4 {
			down := []int{10, 1}[cycle%2]
			j.restore(PathDuring, rapid.IntRange(1, 3).Draw(t, "up"), down, true)
			var done int64
			for n, times := range j.processed {
				if times != 1 {
					t.Fatalf("record %d was processed %d times", n, times)
				}
				done += int64(j.size[n])
			}
			if left := j.left(); done+left != j.total {
				t.Fatalf("cycle %d: processed %d bytes and %d are in flight, of %d", cycle, done, left, j.total)
			}
		}
		j.restore(rapid.SampledFrom(paths).Draw(t, "path"), 2, 3, false)
		for n := range j.size {
			if j.processed[n] != 1 {
				t.Fatalf("record %d was processed %d times", n, j.processed[n])
			}
		}
	})
}
