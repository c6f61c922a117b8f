package snapshot

// Metadata describes a complete checkpoint or savepoint. All numbers in it are
// non-negative.
type Metadata struct {
	Checkpoint        int64
	Savepoint         bool
	Unaligned         bool  // some task may hold in-flight data
	Epoch             int64 // of the master that completed it
	TriggeredUnixNano int64
	Vertices          []VertexState // in topological order of the job
	Coordinators      []CoordinatorState
	Edges             []EdgeState
	// Results are what tasks that had finished reported: they are not run again,
	// and a later master can ask nobody else.
	Results []byte
}

// Vertex finds the state of a vertex by its id, or nil.
func (m *Metadata) Vertex(id string) *VertexState {
	for i := range m.Vertices {
		if m.Vertices[i].ID == id {
			return &m.Vertices[i]
		}
	}
	return nil
}

// Coordinator finds the state of an operator's coordinator; ok is false if it
// had none.
func (m *Metadata) Coordinator(operator string) (data []byte, ok bool) {
	for i := range m.Coordinators {
		if m.Coordinators[i].Operator == operator {
			return m.Coordinators[i].Data, true
		}
	}
	return nil, false
}

// InFlightBytes is the sum over all subtasks.
func (m *Metadata) InFlightBytes() int64 {
	var n int64
	for i := range m.Vertices {
		for j := range m.Vertices[i].Subtasks {
			n += m.Vertices[i].Subtasks[j].InFlightBytes
		}
	}
	return n
}

// StateBytes is the sum over all subtasks, in-flight data not included.
func (m *Metadata) StateBytes() int64 {
	var n int64
	for i := range m.Vertices {
		for j := range m.Vertices[i].Subtasks {
			n += m.Vertices[i].Subtasks[j].StateBytes
		}
	}
	return n
}

// EdgeState is one edge of the job as it was, so that the in-flight data of a
// channel can be mapped to another parallelism.
type EdgeState struct {
	ID          string // of the data set, e.g. "numbers->slow#0"
	From, To    string // ids of vertices
	Partitioner string
	Gate        int // input index at To
	Partition   int // output index at From
}

// VertexState is the state of all subtasks of a vertex.
type VertexState struct {
	ID             string
	Parallelism    int
	MaxParallelism int
	Operators      []string // ids of the operators in the chain, head first
	Kinds          []string // their names in the operator library, one each
	FullyFinished  bool     // all subtasks had finished: it is not run again
	Subtasks       []SubtaskState
}

// CoordinatorState holds the bytes of an operator's coordinator.
type CoordinatorState struct {
	Operator string
	Data     []byte
}

// SubtaskState is what one subtask acknowledged.
type SubtaskState struct {
	Subtask         int
	Finished        bool // it had finished its operators; there is no state
	Operators       []OperatorState
	Inputs, Outputs []ChannelState
	Files           []string // what Extent.File counts into; relative to the checkpoint's folder
	InFlightBytes   int64    // record bytes in Inputs and Outputs
	StateBytes      int64    // bytes behind the handles of Operators
}

// OperatorState is the state of one operator of one subtask.
type OperatorState struct {
	Operator string
	Keyed    []KeyGroupHandle
	List     []ListHandle
}

// KeyGroupHandle points at the keyed state of the contiguous key groups
// First, First+1, …
type KeyGroupHandle struct {
	Handle
	First int
	// Offsets[i] is where key group First+i begins, relative to the section's
	// start; it ends where the next begins, the last one at the section's end.
	Offsets []int64
}

// Group gives the place of a key group within the section. ok is false if the
// handle does not hold it.
func (h *KeyGroupHandle) Group(group int) (offset, length int64, ok bool) {
	i := group - h.First
	if i < 0 || i >= len(h.Offsets) {
		return 0, 0, false
	}
	end := h.Length
	if i+1 < len(h.Offsets) {
		end = h.Offsets[i+1]
	}
	return h.Offsets[i], end - h.Offsets[i], true
}

// Last is the last key group of the handle.
func (h *KeyGroupHandle) Last() int { return h.First + len(h.Offsets) - 1 }

// ListMode says how the items of a list state are spread over the subtasks
// that restore it.
type ListMode uint8

// Modes of list state.
const (
	Split     ListMode = iota // each item to one subtask, round robin
	Union                     // every subtask gets the items of all
	Broadcast                 // every subtask has the same items and gets those of one
)

func (m ListMode) String() string {
	switch m {
	case Split:
		return "split"
	case Union:
		return "union"
	case Broadcast:
		return "broadcast"
	}
	return "unknown"
}

// ListHandle points at the items of one named list state.
type ListHandle struct {
	Handle
	Name  string
	Mode  ListMode
	Items int // how many items the section holds
}

// Handle points at bytes: a section of a file, or inline ones.
type Handle struct {
	File   string // relative to the checkpoint's folder; "" when inline
	Inline []byte
	Offset int64
	Length int64
	CRC    uint32 // CRC32C of the bytes
}

// ChannelState is the in-flight data of one channel, in order. For inputs Gate
// and Channel are the input index and the index of the sending subtask; for
// outputs they are the output index and the subpartition.
type ChannelState struct {
	Gate, Channel int
	Bytes         int64 // record bytes in all extents
	Extents       []Extent
}

// Extent is a piece of a file of in-flight data.
type Extent struct {
	Offset int64
	File   int32 // index into SubtaskState.Files
	Length int32
	CRC    uint32 // CRC32C of the piece
}
