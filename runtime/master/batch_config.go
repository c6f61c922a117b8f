package master

import (
	"time"

	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/joblog"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/source"
	"benchrun/runtime/timeline"
)

// BatchConfig is what the master of a batch job is started with.
type BatchConfig struct {
	Graph     *graph.Graph
	Values    options.Values
	Job       string // joblog.Identity of the job, in its log and in the names of partitions
	Run       string // names it in the files that it leaves: no other job has it (operator.AttemptName)
	Timeline  *timeline.Log
	Origin    time.Time // of the cluster's clock
	Transport exchange.Network
	Epoch     int64
	Log       joblog.Folder
	Result    Result // of the job, for masters to come
	OutputDir string // where finished attempts leave what is to be committed
	Seed      uint64
	// Leads tells whether this master still leads; it is asked before each commit,
	// and before output is taken back or removed. Nil: nobody else can.
	Leads func() error
	// FromScratch wipes a log that cannot be read. Without it such a log is an
	// error with its place.
	FromScratch bool
}

// Result keeps how a job has ended, outside its log. It is written before
// anything of the job is cleaned up, and is the last to go.
type Result interface {
	// Read returns nil while the job has not ended.
	Read() (*joblog.JobFinished, error)
	Write(joblog.JobFinished) error
}

// batchConfig is the job as the batch scheduler knows it.
func batchConfig(cfg BatchConfig) batch.Config {
	v := cfg.Values
	c := batch.Config{
		Mode: batch.Hardened, Recovery: options.BatchJobRecovery.Get(v), Epoch: uint64(cfg.Epoch),
		Parallelism: batch.ParallelismConfig{
			DataPerTask: options.BatchDataVolumePerTask.Get(v), Min: options.BatchMinParallelism.Get(v), Max: options.BatchMaxParallelism.Get(v),
			SourceDefault: options.BatchSourceParallelism.Get(v),
		},
		WorkerTimeout: options.PreviousWorkerTimeout.Get(v), MinPause: options.BatchSnapshotMinPause.Get(v),
		SlotTimeout: options.SlotRequestTimeout.Get(v),
		Restart:     restartConfig(v), Seed: cfg.Seed,
		Silence: options.HeartbeatTimeout.Get(v) + options.HeartbeatInterval.Get(v), // it is looked at from time to time
	}
	if c.Recovery { // else the mode has no effect
		c.Mode = batch.Mode(options.BatchRecoveryMode.Get(v))
	}
	if options.SpeculationEnabled.Get(v) {
		c.Speculation = &batch.SpeculationConfig{
			MaxExecutions: options.SpeculationMaxExecutions.Get(v), BlockWorker: options.SpeculationBlockSlowNode.Get(v),
			CheckInterval: options.SlowTaskCheckInterval.Get(v), Ratio: options.SlowTaskBaselineRatio.Get(v),
			Multiplier: options.SlowTaskBaselineMultiplier.Get(v), LowerBound: options.SlowTaskBaselineLowerBound.Get(v),
		}
	}
	g := cfg.Graph
	for i := range g.Vertices {
		x := &g.Vertices[i]
		y := batch.Vertex{ID: x.ID, Parallelism: x.Parallelism, Source: x.Source(), Commits: commits(x)}
		if x.Parallelism == 0 {
			y.MaxParallelism = x.MaxParallelism
		}
		if x.Source() {
			y.Coordinators = []batch.Coordinator{{Operator: x.ID, Snapshots: c.Mode != batch.Faithful || source.FlinkSnapshots(x.Operators[0].Operator)}}
		}
		c.Vertices = append(c.Vertices, y)
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		c.Edges = append(c.Edges, batch.Edge{
			DataSet: e.ID, From: g.Vertices[e.From].ID, To: g.Vertices[e.To].ID,
			Pointwise: e.Partitioner.Pointwise(), Broadcast: e.Partitioner == graph.Broadcast,
		})
	}
	return c
}

// commits tells whether tasks of a vertex leave something that must become
// visible exactly once: sources the positions of their splits, sinks what they
// have seen or written.
func commits(v *graph.Vertex) bool {
	if v.Source() {
		return true
	}
	for i := range v.Operators {
		switch v.Operators[i].Operator {
		case "verify-sink", "file-sink":
			return true
		}
	}
	return false
}

// Unrecoverable names what recovery could not keep of a job, before it starts.
func Unrecoverable(g *graph.Graph, v options.Values) []batch.Problem {
	return batch.Recoverable(batchConfig(BatchConfig{Graph: g, Values: v, Epoch: 1}))
}
