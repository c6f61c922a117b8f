package source

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// Coordinator hands the splits of one source to its readers. It is a state
// machine: Step takes an event and returns effects in the order in which they
// are to be carried out. It starts no goroutine and blocks on nothing; Step is
// not safe for concurrent use.
//
// Messages to a task must arrive in the order in which they were sent, triggers
// of checkpoints among them; tasks may be triggered once SnapshotDone has been
// returned, and no earlier. Then every split is, in each checkpoint, either in
// the state of exactly one reader or in that of the coordinator.
type Coordinator struct {
	name string
	kind EnumeratorKind

	enumerator Enumerator
	tracker    *tracker
	subtasks   []subtask
	snapshots  []*snapshot // that wait
	seq        uint64
	effects    []Effect
}

// EnumeratorKind makes the enumerators of a source.
type EnumeratorKind struct {
	Version uint16 // of the snapshots
	New     func() Enumerator
	Restore func(snapshot []byte) (Enumerator, error)
}

// StaticSplits is the kind of NewStatic.
func StaticSplits(splits []Split) EnumeratorKind {
	return EnumeratorKind{Version: 1, New: func() Enumerator { return NewStatic(splits) }, Restore: RestoreStatic}
}

// SplitsOnRequest is the kind of NewOnRequest.
func SplitsOnRequest(splits []Split) EnumeratorKind {
	return EnumeratorKind{Version: 2, New: func() Enumerator { return NewOnRequest(splits) }, Restore: RestoreOnRequest}
}

// subtask is what the coordinator knows of one reader.
type subtask struct {
	attempt    int // -1: none is there
	gone       int // attempts up to this one are over
	registered bool
	done       bool // it was told that there are no more splits
	gateway    gateway
	open       map[uint64]bool // events that were produced and not acknowledged
}

// snapshot waits for the acknowledgement of what was produced before it.
type snapshot struct {
	id      int64
	data    []byte
	waiting map[uint64]bool
}

// NewCoordinator makes the coordinator of a source that begins from no
// checkpoint. The name stands in errors.
func NewCoordinator(name string, parallelism int, kind EnumeratorKind) *Coordinator {
	c := &Coordinator{name: name, kind: kind}
	c.begin(kind.New(), parallelism)
	return c
}

// begin forgets everything but the enumerator.
func (c *Coordinator) begin(e Enumerator, parallelism int) {
	c.enumerator = e
	c.tracker = newTracker()
	c.snapshots = nil
	// Late news of checkpoints and attempts before the reset must not look like
	// news of ones that never began.
	var last int64
	gone := -1
	for i := range c.subtasks {
		last = max(last, c.subtasks[i].gateway.last)
		gone = max(gone, c.subtasks[i].gone, c.subtasks[i].attempt)
	}
	c.subtasks = make([]subtask, parallelism)
	for i := range c.subtasks {
		c.subtasks[i] = subtask{attempt: -1, gone: gone, gateway: gateway{last: last}, open: map[uint64]bool{}}
	}
}

// Step takes an event and returns what is to be done, in order. The slice is
// the caller's.
func (c *Coordinator) Step(e Event) []Effect {
	c.effects = nil
	if err := c.handle(e); err != nil {
		c.emit(FailJob{Err: fmt.Errorf("coordinator of source %s: %w", c.name, err)})
	}
	return c.effects
}

func (c *Coordinator) emit(e Effect) { c.effects = append(c.effects, e) }

func (c *Coordinator) handle(e Event) error {
	switch e := e.(type) {
	case SubtaskReady:
		s, err := c.subtask(e.Subtask)
		if err != nil {
			return err
		}
		c.advance(s, e.Attempt)
	case SubtaskFailed:
		s, err := c.subtask(e.Subtask)
		if err != nil {
			return err
		}
		if e.Attempt == s.attempt {
			c.forget(s)
		}
		s.gone = max(s.gone, e.Attempt)
	case SubtaskReset:
		s, err := c.subtask(e.Subtask)
		if err != nil {
			return err
		}
		c.forget(s)
		if back := c.tracker.takeBack(e.Subtask, e.Checkpoint); len(back) > 0 {
			c.enumerator.AddSplitsBack(back, e.Subtask)
		}
	case FromReader:
		return c.fromReader(e)
	case Delivered:
		return c.delivered(e)
	case BeginCheckpoint:
		return c.checkpoint(e.ID)
	case PassedBarrier:
		s, err := c.subtask(e.Subtask)
		if err != nil {
			return err
		}
		return c.openGateway(s, e.ID)
	case CheckpointCompleted:
		c.tracker.complete(e.ID)
		return c.openGateways(e.ID)
	case CheckpointAborted:
		c.snapshots = slices.DeleteFunc(c.snapshots, func(s *snapshot) bool { return s.id == e.ID })
		return c.openGateways(e.ID)
	case Reset:
		return c.reset(e)
	default:
		panic(fmt.Sprintf("source: unknown event %T", e))
	}
	return nil
}

func (c *Coordinator) subtask(i int) (*subtask, error) {
	if i < 0 || i >= len(c.subtasks) {
		return nil, fmt.Errorf("subtask %d of %d", i, len(c.subtasks))
	}
	return &c.subtasks[i], nil
}

// forget drops what was on its way to an attempt that is gone. A snapshot that
// waited for it fails: nobody can say on which side of the barrier it was.
func (c *Coordinator) forget(s *subtask) {
	s.gateway.drop()
	for seq := range s.open {
		c.resolve(seq, fmt.Errorf("the reader failed before it got an event"))
	}
	clear(s.open)
	s.gone = max(s.gone, s.attempt)
	s.attempt, s.registered, s.done = -1, false, false
}

// advance takes note of a newer attempt; false if this one is over.
func (c *Coordinator) advance(s *subtask, attempt int) bool {
	if attempt <= s.gone || attempt < s.attempt {
		return false
	}
	if attempt > s.attempt {
		c.forget(s)
		s.attempt = attempt
	}
	return true
}

func (c *Coordinator) fromReader(e FromReader) error {
	s, err := c.subtask(e.Subtask)
	if err != nil {
		return err
	}
	// The first event of an attempt can be faster than the news that it is
	// there.
	if !c.advance(s, e.Attempt) {
		return nil
	}
	if e.Event.Register && !s.registered {
		s.registered = true
		c.enumerator.AddReader(assigner{c}, e.Subtask)
	}
	if e.Event.Request {
		if !s.registered {
			return fmt.Errorf("reader %d asks for a split before it has registered", e.Subtask)
		}
		if s.done {
			return nil // what has come back since would find it at its end
		}
		c.enumerator.HandleRequest(assigner{c}, e.Subtask)
	}
	return nil
}

// assigner is the coordinator as its enumerator sees it.
type assigner struct{ c *Coordinator }

func (a assigner) Parallelism() int { return len(a.c.subtasks) }

func (a assigner) Registered() []int {
	var is []int
	for i := range a.c.subtasks {
		if a.c.subtasks[i].registered {
			is = append(is, i)
		}
	}
	return is
}

func (a assigner) Assign(subtask int, splits []Split) {
	a.c.tracker.assign(subtask, splits)
	e := CoordinatorEvent{Splits: make([][]byte, len(splits)), IDs: make([]string, len(splits))}
	for i, s := range splits {
		e.Splits[i], e.IDs[i] = s.Data, s.ID
	}
	a.c.send(subtask, e)
}

func (a assigner) NoMoreSplits(subtask int) {
	if s := &a.c.subtasks[subtask]; !s.done {
		s.done = true
		a.c.send(subtask, CoordinatorEvent{NoMore: true})
	}
}

func (c *Coordinator) send(i int, e CoordinatorEvent) {
	s := &c.subtasks[i]
	c.seq++
	send := Send{Subtask: i, Attempt: s.attempt, Seq: c.seq, Event: e}
	s.open[c.seq] = true
	if s.gateway.send(send) {
		c.emit(send)
	}
}

func (c *Coordinator) delivered(e Delivered) error {
	s, err := c.subtask(e.Subtask)
	if err != nil {
		return err
	}
	if !s.open[e.Seq] {
		return nil // it went to an attempt that is gone
	}
	delete(s.open, e.Seq)
	c.resolve(e.Seq, e.Err)
	if e.Err != nil {
		// Sending it again could deliver it twice; the attempt must go.
		c.emit(FailTask{Subtask: e.Subtask, Attempt: s.attempt,
			Err: fmt.Errorf("coordinator of source %s: an event for subtask %d was lost: %w", c.name, e.Subtask, e.Err)})
	}
	return nil
}

// resolve tells waiting snapshots of the fate of an event.
func (c *Coordinator) resolve(seq uint64, err error) {
	c.snapshots = slices.DeleteFunc(c.snapshots, func(s *snapshot) bool {
		switch {
		case !s.waiting[seq]:
			return false
		case err != nil:
			c.emit(SnapshotFailed{ID: s.id, Err: fmt.Errorf("coordinator of source %s: %w", c.name, err)})
			return true
		}
		delete(s.waiting, seq)
		if len(s.waiting) == 0 {
			c.emit(SnapshotDone{ID: s.id, Data: s.data})
			return true
		}
		return false
	})
}

// checkpoint marks all gateways, takes the snapshot and closes them. Nothing
// can come in between, so either all close or none.
func (c *Coordinator) checkpoint(id int64) error {
	for i := range c.subtasks {
		if err := c.subtasks[i].gateway.mark(id); err != nil {
			return err
		}
	}
	s := &snapshot{id: id, data: c.encode(), waiting: map[uint64]bool{}}
	c.tracker.snapshot(id)
	for i := range c.subtasks {
		c.subtasks[i].gateway.close(id)
		maps.Copy(s.waiting, c.subtasks[i].open)
	}
	if len(s.waiting) == 0 {
		c.emit(SnapshotDone{ID: id, Data: s.data})
		return nil
	}
	c.snapshots = append(c.snapshots, s)
	return nil
}

func (c *Coordinator) openGateway(s *subtask, id int64) error {
	events, err := s.gateway.open(id)
	for _, e := range events {
		c.emit(e)
	}
	return err
}

func (c *Coordinator) openGateways(id int64) error {
	for i := range c.subtasks {
		// One that was aborted before it came to us is unknown here.
		if id <= c.subtasks[i].gateway.last {
			if err := c.openGateway(&c.subtasks[i], id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Coordinator) reset(e Reset) error {
	if e.Parallelism < 1 {
		return fmt.Errorf("reset to parallelism %d", e.Parallelism)
	}
	if e.Checkpoint == BatchCheckpoint {
		return c.resetBatch(e)
	}
	if e.State == nil {
		c.begin(c.kind.New(), e.Parallelism)
		return nil
	}
	enumerator, err := c.decode(e.State)
	if err != nil {
		return fmt.Errorf("restore from checkpoint %d: %w", e.Checkpoint, err)
	}
	c.begin(enumerator, e.Parallelism)
	return nil
}

const (
	coordinatorVersion = 1
	coordinatorHeader  = 8
)

// encode: version (2), version of the enumerator (2), length (4), enumerator.
func (c *Coordinator) encode() []byte {
	data := c.enumerator.Snapshot()
	b := make([]byte, 0, coordinatorHeader+len(data))
	b = binary.LittleEndian.AppendUint16(b, coordinatorVersion)
	b = binary.LittleEndian.AppendUint16(b, c.kind.Version)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	return append(b, data...)
}

func (c *Coordinator) decode(b []byte) (Enumerator, error) {
	if len(b) < coordinatorHeader {
		return nil, fmt.Errorf("coordinator state of %d bytes is too short", len(b))
	}
	if v := binary.LittleEndian.Uint16(b); v != coordinatorVersion {
		return nil, fmt.Errorf("coordinator state has version %d, this program reads %d", v, coordinatorVersion)
	}
	if v := binary.LittleEndian.Uint16(b[2:]); v != c.kind.Version {
		return nil, fmt.Errorf("state of a split enumerator has version %d, this source reads %d", v, c.kind.Version)
	}
	if n := binary.LittleEndian.Uint32(b[4:]); int64(n) != int64(len(b)-coordinatorHeader) {
		return nil, fmt.Errorf("coordinator state has %d bytes, %d are recorded", len(b)-coordinatorHeader, n)
	}
	return c.kind.Restore(b[coordinatorHeader:])
}
