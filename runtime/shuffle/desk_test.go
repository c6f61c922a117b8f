package shuffle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
	"benchrun/runtime/record"
)

// fataler is a test or a check of rapid.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// small is a store whose segments hold few records.
func small(dir string) Config {
	return Config{Dir: dir, SegmentSize: 256, ReadMemory: 4096, ReadAhead: 3, MaxOpen: 2, Threads: 2}
}

func open(t fataler, c Config) *Store {
	t.Helper()
	s, a, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Damaged) > 0 || len(a.Foreign) > 0 {
		t.Fatalf("opened with %+v", a)
	}
	return s
}

// shut closes a store and checks that nothing of it is left in this process.
func shut(t fataler, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if st := s.memory.Stats(); st.Used != 0 || st.Pools != 0 {
		t.Fatalf("memory of readers is not back: %+v", st)
	}
	s.mu.Lock()
	readers, writing := len(s.mu.readers), len(s.mu.writing)
	s.mu.Unlock()
	if readers != 0 || writing != 0 {
		t.Fatalf("%d readers and %d writers are left", readers, writing)
	}
	checkNoOpen(t, s.c.Dir)
}

// checkNoOpen looks for open files below a folder.
func checkNoOpen(t fataler, dir string) {
	t.Helper()
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(fds) == 0 {
		return // another system: goleak and the counts above have to do
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil && len(to) > len(dir) && to[:len(dir)] == dir {
			t.Fatalf("%s is still open", to)
		}
	}
}

// output is what a producing subtask writes: records by subpartition, in the
// order of writing.
type output struct {
	subs  [][][]byte // serialised
	order []int      // subpartition of each record
	mark  int64
}

// randomOutput draws records whose data have up to most bytes.
func randomOutput(rnd *rand.Rand, subs, records, most int) *output {
	o := &output{subs: make([][][]byte, subs), mark: record.MinWatermark}
	for i := range records {
		sub := rnd.IntN(subs)
		r := record.Record{Key: rnd.Uint64(), Number: uint64(i), Time: int64(rnd.IntN(1000)), Value: rnd.Int64(), Copy: uint32(sub), Source: 7}
		if most > 0 {
			r.Data = make([]byte, rnd.IntN(most+1))
			for k := range r.Data { // half of it compresses well
				if k%2 == 0 {
					r.Data[k] = byte(rnd.Uint32())
				}
			}
		}
		o.add(sub, &r)
	}
	if rnd.IntN(2) == 0 {
		o.mark = rnd.Int64N(1000)
	}
	return o
}

func (o *output) add(sub int, r *record.Record) {
	b := make([]byte, r.Size())
	r.Put(b)
	o.subs[sub] = append(o.subs[sub], b)
	o.order = append(o.order, sub)
}

// write writes everything with a writer and returns the first error.
func (o *output) write(w *Writer) error {
	next := make([]int, len(o.subs))
	for i, sub := range o.order {
		var r record.Record
		r.Get(o.subs[sub][next[sub]][4:])
		next[sub]++
		if err := w.Write(sub, &r); err != nil {
			return err
		}
		if o.mark != record.MinWatermark {
			w.Watermark(min(o.mark, int64(i)))
		}
	}
	if o.mark != record.MinWatermark {
		w.Watermark(o.mark)
	}
	return nil
}

// bodies are the records of a range of subpartitions, sorted: their order is not
// that of writing once there are regions.
func (o *output) bodies(r Range) (b [][]byte) {
	for _, sub := range o.subs[r.First : r.Last+1] {
		for _, x := range sub {
			b = append(b, x[4:])
		}
	}
	slices.SortFunc(b, bytes.Compare)
	return b
}

// make writes a whole partition.
func (o *output) make(t fataler, s *Store, id PartitionID, memory int, codec Codec) Finished {
	t.Helper()
	g := buffer.NewGlobal(s.c.SegmentSize, 1<<16)
	w, err := s.Create(id, WriterConfig{Subpartitions: len(o.subs), Memory: memory, Pool: g, Codec: codec})
	if err != nil {
		t.Fatal(err)
	}
	if err := o.write(w); err != nil {
		t.Fatal(err)
	}
	f, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if st := g.Stats(); st.Used != 0 || st.Pools != 0 || st.Peak*s.c.SegmentSize > memory {
		t.Fatalf("memory of the writer, %d bytes: %+v", memory, st)
	}
	o.checkFinished(t, f)
	return f
}

// checkFinished compares what the inventory says with what was written.
func (o *output) checkFinished(t fataler, f Finished) {
	t.Helper()
	if len(f.Bytes) != len(o.subs) || len(f.Records) != len(o.subs) || f.Watermark != o.mark {
		t.Fatalf("finished %+v, %d subpartitions were written and watermark %d", f, len(o.subs), o.mark)
	}
	for i, sub := range o.subs {
		var n int64
		for _, b := range sub {
			n += int64(len(b))
		}
		if f.Bytes[i] != n || f.Records[i] != int64(len(sub)) {
			t.Fatalf("subpartition %d has %d records of %d bytes, %d of %d were written", i, f.Records[i], f.Bytes[i], len(sub), n)
		}
	}
}

// channel collects what comes out of one channel of a gate.
type channel struct {
	des  record.Deserializer
	got  [][]byte
	mark int64
	ends []record.EventKind
}

func (c *channel) take(b buffer.Buffer) error {
	if !b.IsData() {
		c.ends = append(c.ends, b.Event.Kind)
		if !c.des.Empty() {
			return errors.New("the stream ends within a record")
		}
		return nil
	}
	defer b.Release()
	if len(c.ends) > 0 {
		return errors.New("data behind the end")
	}
	c.des.Feed(b.Data)
	for {
		body, err := c.des.Next()
		if body == nil || err != nil {
			return err
		}
		if err := record.CheckBody(body); err != nil {
			return err
		}
		if body[0] == record.TagWatermark {
			c.mark = record.WatermarkTime(body)
			continue
		}
		if c.mark != record.MinWatermark {
			return errors.New("a record behind the watermark")
		}
		c.got = append(c.got, bytes.Clone(body))
	}
}

// inputGate is a gate and the channel on which it wakes its reader.
type inputGate struct {
	*exchange.Gate
	wake chan struct{}
}

func newGate(t fataler, g *buffer.Global, channels, remote int) *inputGate {
	t.Helper()
	x := &inputGate{wake: make(chan struct{}, 1)}
	var err error
	x.Gate, err = exchange.NewGate(g, exchange.GateConfig{Name: "test", Channels: channels, Remote: remote, Exclusive: 2, Floating: 4, Wake: func() {
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// drain reads a gate to the end of all channels.
func (g *inputGate) drain() ([]*channel, error) {
	list := make([]*channel, g.Channels())
	for i := range list {
		list[i] = &channel{mark: record.MinWatermark}
	}
	for open := len(list); open > 0; {
		ch, b, ok := g.Poll()
		if err := g.Err(); err != nil {
			if ok {
				b.Release()
			}
			return list, err
		}
		if !ok {
			<-g.wake
			continue
		}
		if err := list[ch].take(b); err != nil {
			return list, fmt.Errorf("channel %d: %w", ch, err)
		}
		if b.Event != nil && b.Event.Kind == record.EndOfPartition {
			open--
		}
	}
	return list, nil
}

// read reads one range by a gate of this worker.
func read(t fataler, s *Store, id PartitionID, r Range) (*channel, error) {
	t.Helper()
	g := newGate(t, buffer.NewGlobal(s.c.SegmentSize, 16), 1, 0)
	defer g.Close()
	if err := s.Connect(context.Background(), g.Gate, []Input{{Partition: id, Range: r}}, 1); err != nil {
		return nil, err
	}
	c, err := g.drain()
	return c[0], err
}

// check compares what was read with what was written.
func (o *output) check(t fataler, c *channel, r Range) {
	t.Helper()
	want := o.bodies(r)
	got := slices.Clone(c.got)
	slices.SortFunc(got, bytes.Compare)
	if !slices.EqualFunc(got, want, bytes.Equal) {
		t.Fatalf("range %v: %d records were read, %d written, or they differ", r, len(got), len(want))
	}
	if c.mark != o.mark || !slices.Equal(c.ends, []record.EventKind{record.EndOfData, record.EndOfPartition}) {
		t.Fatalf("range %v: watermark %d, want %d; ends %v", r, c.mark, o.mark, c.ends)
	}
}

// expect reads a range and compares.
func (o *output) expect(t fataler, s *Store, id PartitionID, r Range) {
	t.Helper()
	c, err := read(t, s, id, r)
	if err != nil {
		t.Fatal(err)
	}
	o.check(t, c, r)
}

func partitionOf(job string, index int) PartitionID {
	return PartitionID{Job: job, Dataset: "map->reduce#0", Index: index, Attempt: 1, Epoch: 3}
}

func seeded(t *testing.T) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
