package spec

import (
	"time"

	"benchrun/runtime/options"
)

// Modes of a job.
const (
	Streaming = "streaming"
	Batch     = "batch"
)

// Workload is the job, cluster and scenario of one cell, with the cell's
// values put in. It is complete: every default is filled in.
type Workload struct {
	File        string // path as it was given
	Dir         string // absolute folder that relative paths were resolved against
	Name        string
	Description string
	Tags        []string
	Run         Run
	Cluster     Cluster
	Options     options.Values // of [options] and the cell
	Cell        Cell

	Mode           string // Streaming or Batch
	Parallelism    int    // default of the vertices; batch: 0 is decided at run time
	MaxParallelism int
	Vertices       []Vertex // in file order
	Edges          []Edge   // in file order
	Steps          []Step   // repeats written out
	Thresholds     []Threshold
}

// Run is the [run] table.
type Run struct {
	Repeats        int
	Warmup         int
	Seed           uint64
	TrialTimeout   time.Duration
	Primary        string // metric that a gate judges
	PrimaryGiven   bool   // the file names it
	IncludeInvalid bool
}

// Cluster is the [cluster] table. Sizes are bytes.
type Cluster struct {
	Target                  string
	Workers                 int
	SlotsPerWorker          int
	NetworkMemory           int64 // per worker
	BufferSize              int64
	BuffersPerChannel       int // exclusive
	FloatingBuffersPerGate  int
	MaxBuffersPerChannel    int // of a subpartition
	OverdraftBuffersPerGate int
	StateBackend            string
	Storage                 string // URL, of which each trial gets a part; empty: inside the trial's folder
}

// Vertex is one operator of the job graph.
type Vertex struct {
	ID          string
	Operator    string
	Kind        Kind
	Parallelism int // resolved: the vertex's own or the workload's; batch: 0 is decided at run time
	Params      Params
}

// Params holds the parameters of all operators; those that the vertex's
// operator does not have are zero.
type Params struct {
	Rate       float64       // records per second of the whole vertex; 0: as fast as it goes
	Records    int64         // 0: unbounded
	RecordSize int64         // serialised bytes
	Keys       int64         // number of distinct keys
	KeySkew    float64       // exponent of the bounded Zipf distribution; 0: uniform
	Splits     int           // of a source
	Paths      []string      // lines: absolute patterns
	Loop       bool          // lines: start over at the end
	Keep       float64       // filter: share of records that pass, 0 to 1
	FanOut     int           // flat-map: copies of each record
	Size       time.Duration // window-sum: width in event time
	Path       string        // file-sink: absolute folder, of which each trial gets a part; empty: inside the trial's folder
	Cost       time.Duration // per record
	CostKind   string        // wait or cpu
	StateSize  int64         // bytes per key
}

// Edge joins two vertices.
type Edge struct {
	From, To    string
	Partitioner string
	Input       int // of the receiving operator: 1, or 2 for the second edge into a two-input operator
}

// Step is one step of the scenario: exactly one of Do and Wait is set.
type Step struct {
	Name  string // as in the file, "name#2" for a repeat, else "step-N"
	Named bool   // the file gives a name
	Line  int    // in the file
	Do    *Do
	Wait  *Wait
}

// Random marks a choice that the trial draws.
const Random = -1

// Do is an action or a fault. Fields that its kind does not use are zero.
type Do struct {
	Kind         string
	Parallelism  map[string]int // rescale
	Vertex       string         // fail-task, drop-partition
	Subtask      int            // fail-task, drop-partition; Random
	Worker       int            // kill-worker, freeze-worker: index among live workers that run a task; Random
	ReplaceAfter time.Duration  // kill-worker; negative: never
	For          time.Duration  // freeze-worker, fail-storage
	StorageKind  string         // fail-storage: error, slow, full, torn
	DownFor      time.Duration  // kill-jobmanager
	When         *When          // nil: at once
}

// IsFault tells whether the step disturbs the job, so that its start is a t0.
func (d *Do) IsFault() bool { return actionByName[d.Kind] != nil && actionByName[d.Kind].Fault }

// When delays a fault until its moment has come. Exactly one condition is set.
type When struct {
	DuringRecovery bool    // a recovery is under way
	Restored       float64 // share of the restored in-flight data that is processed; negative: not asked
	Checkpoint     string  // "in-progress", or empty
	Timeout        time.Duration
}

// Wait holds conditions that must all be true. Zero values are not asked.
type Wait struct {
	Running         bool
	Checkpoints     int
	Records         int64
	FirstCheckpoint bool
	Drained         bool
	CaughtUp        bool
	InFlight        int64 // bytes
	Elapsed         time.Duration
	Progress        float64 // batch
	ProgressTo      float64 // batch; above Progress: each block draws a value between them
	Timeout         time.Duration
}

// Threshold is one absolute limit, kept as text.
type Threshold struct {
	Cells string // "R=true,D=true", or "*" for all
	Text  string // "median(time_to_first_checkpoint_s) < 5 s"
}

// Cell is one combination of the matrix.
type Cell struct {
	ID     string         // stable; "default" without a matrix
	Flags  map[string]any // short name -> typed value: bool, int64, float64, string
	Values []AxisValue    // in axis order
	// Reason tells why the cell is left out: the rule that it breaks. Empty for
	// cells that run.
	Reason string
	// Control is true for a cell that breaks a rule and runs all the same.
	Control bool
}

// AxisValue is the value of one axis in a cell.
type AxisValue struct {
	Key   string // option key or path in the file
	Short string // name in the cell id
	Value any    // as in the file: bool, int64, float64, string
}

// Vertex returns the vertex with an id, or nil.
func (w *Workload) Vertex(id string) *Vertex {
	for i := range w.Vertices {
		if w.Vertices[i].ID == id {
			return &w.Vertices[i]
		}
	}
	return nil
}

// Inputs lists the edges into a vertex, in file order.
func (w *Workload) Inputs(id string) []Edge {
	var in []Edge
	for _, e := range w.Edges {
		if e.To == id {
			in = append(in, e)
		}
	}
	return in
}

// Outputs lists the edges out of a vertex, in file order.
func (w *Workload) Outputs(id string) []Edge {
	var out []Edge
	for _, e := range w.Edges {
		if e.From == id {
			out = append(out, e)
		}
	}
	return out
}
