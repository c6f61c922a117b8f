package cluster

import (
	"fmt"
	"path/filepath"
	"time"

	"benchrun/runtime/exchange"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
	"benchrun/runtime/worker"
)

// workerPlace is what a worker is given by the place where it runs, this process
// or one of its own, whatever the job.
type workerPlace struct {
	name      string
	index     int
	slots     int
	memory    int64
	segment   int
	network   task.NetworkConfig
	dir       string
	outputDir string
	timeline  *timeline.Log
	transport exchange.Network
	values    options.Values
}

func workerName(index int) string { return fmt.Sprintf("worker-%d", index) }

// place is that of a worker in this process, on a folder of its own or on that of
// one that is gone.
func (c *Config) place(index int, dir string) workerPlace {
	p := workerPlace{
		name: workerName(index), index: index, slots: c.Slots, memory: c.NetworkMemory, segment: c.BufferSize, network: c.Network,
		dir: dir, outputDir: c.Dir, timeline: c.Timeline, transport: c.Transport, values: c.Values,
	}
	if dir == "" {
		p.dir = filepath.Join(c.Dir, p.name)
	}
	return p
}

// place is that of the worker that this process is.
func (n *node) place(sub *submission, values options.Values) workerPlace {
	return workerPlace{
		name: n.Name, index: n.Index, slots: sub.Slots, memory: sub.NetworkMemory, segment: sub.BufferSize, network: sub.Network,
		dir: n.Dir, outputDir: sub.OutputDir, timeline: n.log, transport: n.network, values: values,
	}
}

// streaming is the configuration of a worker that takes part in a streaming job.
func (p workerPlace) streaming(checkpoints storage.Store) worker.Config {
	return worker.Config{
		Name: p.name, Index: p.index, Slots: p.slots, Memory: p.memory, Segment: p.segment, Network: p.network, Checkpoints: checkpoints,
		Dir: p.dir, OutputDir: p.outputDir, Timeline: p.timeline, Origin: p.timeline.Origin(), Transport: p.transport,
		Heartbeat: options.HeartbeatInterval.Get(p.values), Tick: tick(p.values), PerFile: options.MaxSubtasksPerChannelStateFile.Get(p.values),
	}
}

// batch is that of one that takes part in a batch job.
func (p workerPlace) batch() worker.BatchConfig {
	recovery := options.BatchJobRecovery.Get(p.values)
	return worker.BatchConfig{
		Name: p.name, Index: p.index, Slots: p.slots, Memory: p.memory, Segment: p.segment, Network: p.network,
		Dir: p.dir, OutputDir: p.outputDir, Timeline: p.timeline, Origin: p.timeline.Origin(), Transport: p.transport,
		Heartbeat: options.HeartbeatInterval.Get(p.values), Tick: tick(p.values), Retention: options.WorkerRegistrationTimeout.Get(p.values),
		Read:     options.ShuffleReadMemory.Get(p.values),
		Recovery: recovery, Adoption: recovery && options.BatchRecoveryMode.Get(p.values) == string(batch.Hardened),
	}
}

// tick is how often tasks look at what is due by time.
func tick(v options.Values) time.Duration {
	return max(time.Millisecond, min(options.BufferTimeout.Get(v), options.WatermarkInterval.Get(v), 100*time.Millisecond))
}
