package plan

import (
	"time"

	"benchrun/workloads/spec"
)

// What a batch job costs besides the cost of its operators; measured on a small
// machine with two cores. What lies in the files of a lines source is not known
// before they are read.
const (
	shuffleRate  = 150 << 20 // bytes/s through one edge, written and read
	taskCost     = 4 * time.Millisecond
	defaultWidth = 16 // of a vertex whose parallelism is decided at run time
)

// batchTime walks the job stage by stage: costs are paid by as many tasks at a
// time as have a slot. A fault adds what it is down for.
func batchTime(w *spec.Workload) time.Duration {
	slots := max(1, w.Cluster.Workers*w.Cluster.SlotsPerWorker)
	total := startCost + finishCost
	in := batchRecords(w)
	for _, v := range w.Vertices {
		width := v.Parallelism
		if width == 0 {
			width = defaultWidth
		}
		total += time.Duration(float64(v.Params.Cost) * float64(in[v.ID]) / float64(min(width, slots)))
		total += taskCost * time.Duration((width+slots-1)/slots)
	}
	total += time.Duration(float64(batchBytes(w)) / shuffleRate * float64(time.Second))
	for _, s := range w.Steps {
		if s.Do != nil && s.Do.IsFault() {
			total += faultCost + s.Do.DownFor
		}
		if s.Wait != nil {
			total += s.Wait.Elapsed
		}
	}
	return min(total, w.Run.TrialTimeout)
}

// batchRecords is how many records go into each vertex at most, and out of each
// source.
func batchRecords(w *spec.Workload) map[string]int64 {
	in := map[string]int64{}
	for _, v := range w.Vertices {
		if v.Kind == spec.Source {
			in[v.ID] = v.Params.Records
		}
	}
	for range w.Vertices { // as often as the longest way is long
		next := map[string]int64{}
		for _, v := range w.Vertices {
			if v.Kind == spec.Source {
				next[v.ID] = in[v.ID]
			}
		}
		for _, e := range w.Edges {
			out := in[e.From]
			if v := w.Vertex(e.From); v.Operator == "flat-map" {
				out *= int64(v.Params.FanOut)
			} else if v.Operator == "join" {
				out /= 2
			}
			next[e.To] += out
		}
		in = next
	}
	return in
}

// batchBytes is what goes over edges between tasks.
func batchBytes(w *spec.Workload) (sum int64) {
	size := int64(0)
	for _, v := range w.Vertices {
		size = max(size, v.Params.RecordSize)
	}
	in := batchRecords(w)
	for _, e := range w.Edges {
		from := w.Vertex(e.From)
		if w.Chained(e) || from.Operator == "count-by-key" || from.Operator == "window-sum" {
			continue // an aggregate is small
		}
		sum += in[e.From] * max(size, spec.MinRecordSize)
	}
	return sum
}
