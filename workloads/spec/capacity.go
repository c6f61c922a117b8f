package spec

import (
	"fmt"

	"benchrun/runtime/options"
)

// Chained tells whether an edge joins two operators in one task, so that it
// has no channels: as in Flink, a forward edge at equal parallelism that is
// the only input of its receiver, with chaining on.
func (w *Workload) Chained(e Edge) bool {
	from, to := w.Vertex(e.From), w.Vertex(e.To)
	return from != nil && to != nil && e.Partitioner == "forward" && from.Parallelism == to.Parallelism &&
		len(w.Inputs(e.To)) == 1 && options.OperatorChaining.Get(w.Options)
}

// ChainHead is the first operator of the task that an operator is chained into:
// tasks go by its id.
func (w *Workload) ChainHead(id string) string {
	for range w.Edges { // a chain is no longer
		in := w.Inputs(id)
		if len(in) != 1 || !w.Chained(in[0]) {
			break
		}
		id = in[0].From
	}
	return id
}

// EdgeCapacity is what the buffers of one edge hold.
type EdgeCapacity struct {
	From, To string
	Bytes    int64
}

// Capacity is the most in-flight data that the job's buffers hold at its
// initial parallelism, by edge. Subtask i of a vertex is taken to run on
// worker i mod W.
func (w *Workload) Capacity() (edges []EdgeCapacity, total int64) {
	return w.capacity(w.parallelism(), w.Cluster.Workers)
}

func (w *Workload) capacity(parallelism map[string]int, workers int) (edges []EdgeCapacity, total int64) {
	c := w.Cluster
	for _, e := range w.Edges {
		if w.Chained(e) {
			edges = append(edges, EdgeCapacity{e.From, e.To, 0})
			continue
		}
		up, down := parallelism[e.From], parallelism[e.To]
		var buffers int64
		remote := make([]int64, down)
		for i := range up {
			from, to := consumers(e.Partitioner, i, up, down)
			n := int64(to - from)
			buffers += min(n*int64(c.BuffersPerChannel)+int64(c.FloatingBuffersPerGate), n*int64(c.MaxBuffersPerChannel))
			for j := from; j < to; j++ {
				if i%workers != j%workers {
					remote[j]++
				}
			}
		}
		for _, r := range remote {
			buffers += r*int64(c.BuffersPerChannel) + int64(c.FloatingBuffersPerGate)
		}
		bytes := buffers * c.BufferSize
		edges = append(edges, EdgeCapacity{e.From, e.To, bytes})
		total += bytes
	}
	return edges, total
}

// consumers is the range of downstream subtasks that upstream subtask i is
// connected to: all of them, or a share for the pointwise partitioners.
func consumers(partitioner string, i, up, down int) (from, to int) {
	if partitioner != "forward" && partitioner != "rescale" {
		return 0, down
	}
	if up > down {
		for j := range down {
			if i >= j*up/down && i < (j+1)*up/down {
				return j, j + 1
			}
		}
	}
	return (i*down + up - 1) / up, ((i+1)*down + up - 1) / up
}

// NetworkNeed is the least number of buffers that the busiest worker needs:
// for each gate its remote channels' exclusive buffers and one more, for each
// result one a subpartition.
func (w *Workload) NetworkNeed() (buffers int64, worker int) {
	return w.networkNeed(w.parallelism(), w.Cluster.Workers)
}

func (w *Workload) networkNeed(parallelism map[string]int, workers int) (buffers int64, worker int) {
	need := make([]int64, workers)
	for _, e := range w.Edges {
		if w.Chained(e) {
			continue
		}
		up, down := parallelism[e.From], parallelism[e.To]
		for i := range up {
			from, to := consumers(e.Partitioner, i, up, down)
			need[i%workers] += int64(to - from)
			for j := from; j < to; j++ {
				if i%workers != j%workers {
					need[j%workers] += int64(w.Cluster.BuffersPerChannel)
				}
			}
		}
		for j := range down {
			need[j%workers]++
		}
	}
	for i, n := range need {
		if n > buffers {
			buffers, worker = n, i
		}
	}
	return buffers, worker
}

// Slots is the number of slots that the job needs at its widest, with the
// vertex that needs them.
func (w *Workload) Slots() (need int, vertex string) {
	for _, stage := range w.stages() {
		if n, v := maxParallelism(stage); n > need {
			need, vertex = n, v
		}
	}
	return need, vertex
}

// clusterAt is the table of the cluster, for problems that show later.
func (d *decoder) clusterAt() *section {
	s := &section{r: d.r, n: d.root.get("cluster"), path: "cluster"}
	if s.n == nil || s.n.form != tableForm {
		s.n = newTable(span{src: d.root.at.src})
	}
	return s
}

// checkCapacity checks slots, network memory and in-flight targets.
func (d *decoder) checkCapacity() {
	if d.wrong.numbers || d.wrong.shape || d.w.Mode == Batch {
		return // tasks of a batch job run in waves, and what is between them is on disk
	}
	w := d.w
	c := w.Cluster
	cluster := d.clusterAt()
	need, vertex := w.Slots()
	if have := c.Workers * c.SlotsPerWorker; have < need {
		cluster.fail("slots-per-worker", fmt.Sprintf("too few slots: %s needs %d, but %d workers of %d slots have %d", vertex, need, c.Workers, c.SlotsPerWorker, have),
			fmt.Sprintf("raise cluster.slots-per-worker to %d, or cluster.workers", (need+c.Workers-1)/c.Workers))
		return
	}
	most := int64(0)
	for _, stage := range w.stages() {
		if n, _ := w.networkNeed(stage, c.Workers); n > most {
			most = n
		}
	}
	if have := c.NetworkMemory / c.BufferSize; have < most {
		cluster.fail("network-memory", fmt.Sprintf("too little network memory: a worker needs at least %d buffers of %s, that is %s, but has %d", most, options.FormatSize(c.BufferSize), options.FormatSize(most*c.BufferSize), have),
			fmt.Sprintf("raise cluster.network-memory to at least %q, or lower cluster.buffer-size or cluster.buffers-per-channel", options.FormatSize(most*c.BufferSize)))
	}
	now := w.parallelism()
	for i, step := range w.Steps {
		if step.Do != nil && step.Do.Kind == "rescale" {
			for k, v := range step.Do.Parallelism {
				now[k] = v
			}
		}
		if step.Wait == nil || step.Wait.InFlight == 0 {
			continue
		}
		edges, sum := w.capacity(now, c.Workers)
		sum = min(sum, int64(c.Workers)*c.NetworkMemory)
		if step.Wait.InFlight <= sum {
			continue
		}
		detail := ""
		for j, e := range edges {
			if j > 0 {
				detail += ", "
			}
			detail += fmt.Sprintf("%s -> %s %s", e.From, e.To, humanSize(e.Bytes))
		}
		s := &section{r: d.r, n: d.steps[i].n.get("wait"), path: d.steps[i].path + ".wait"}
		key := "cluster.buffers-per-channel and cluster.max-buffers-per-channel"
		if _, total := w.capacity(now, c.Workers); total >= step.Wait.InFlight {
			key = "cluster.network-memory"
		}
		s.fail("in-flight", fmt.Sprintf("is more than the job's buffers hold: %s (%s)", humanSize(sum), detail), "raise "+key)
	}
}

// humanSize rounds a size to three digits for messages.
func humanSize(n int64) string {
	f, units := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 || f == float64(int64(f)) {
		return fmt.Sprintf("%.0f %s", f, units[i])
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}
