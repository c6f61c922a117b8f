package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"benchrun/runtime/options"
)

// What a file may ask of a batch job and of a streaming job differs: a batch job
// takes no checkpoints and has nothing in flight, a streaming job has no end
// that progress could be measured against.

// batchOptions are the options that mean something in batch mode only, by the
// beginning of their keys.
var batchOptions = []string{"execution.batch.", "job-event.store.", "slow-task-detector.",
	"taskmanager.network.compression.", "taskmanager.network.sort-shuffle.", "taskmanager.memory.framework.off-heap.batch-shuffle."}

// streamingOptions mean nothing in batch mode.
var streamingOptions = []string{"execution.checkpointing.", "execution.state-recovery.", "jobmanager.adaptive-scheduler.", "pipeline.sources.", "pipeline.auto-watermark-interval"}

// checkOptions refuses options of the other mode, unless they say what is so
// anyway.
func (d *decoder) checkOptions() {
	wrong, why, hint := batchOptions, "is for batch jobs, and this one is streaming", `set workload.mode = "batch", or remove it`
	if d.w.Mode == Batch {
		wrong, why, hint = streamingOptions, "is for streaming jobs: a batch job takes no checkpoints", "remove it"
	}
	for _, key := range slices.Sorted(maps.Keys(d.optionsAt)) {
		n := d.optionsAt[key]
		info, ok := options.Lookup(key)
		if !ok || !slices.ContainsFunc(wrong, func(prefix string) bool { return strings.HasPrefix(info.Key, prefix) }) {
			continue
		}
		if d.w.Options.Effective()[info.Key] == info.Canonical(info.Default) {
			continue
		}
		d.r.add(n.keyAt.problem("options."+quoteSegment(key), n.show(), why, hint))
	}
}

// batchConditions are the conditions of a wait or a when that can come true in
// one mode only.
var batchConditions = map[string]string{
	"checkpoints": Streaming, "first-checkpoint": Streaming, "drained": Streaming, "caught-up": Streaming, "in-flight": Streaming,
	"restored": Streaming, "checkpoint": Streaming, "progress": Batch,
}

// mode reports the conditions that can never come true in the job's mode, and
// tells whether there are any.
func (d *decoder) mode(s *section, of map[string]string) (wrong bool) {
	for _, k := range s.n.keys {
		switch want := of[k]; {
		case want == "" || want == d.w.Mode:
		case want == Batch:
			s.fail(k, "can never come: it is for batch jobs, and this one is streaming", "")
			wrong = true
		default:
			s.fail(k, "can never come: a batch job takes no checkpoints and has nothing in flight", "wait for progress, running, records or elapsed")
			wrong = true
		}
	}
	return wrong
}

// checkMode refuses an action of the other mode.
func (d *decoder) checkMode(s *section, a *Action) {
	switch {
	case a.Mode == "" || a.Mode == d.w.Mode:
	case a.Mode == Batch:
		s.fail("do", "is for batch jobs, and this one is streaming", a.otherwise())
	default:
		s.fail("do", "is for streaming jobs, and this one is batch", a.otherwise())
	}
}

// otherwise names what comes nearest to an action in a job of the other mode.
func (a *Action) otherwise() string {
	switch {
	case a.Mode == Batch:
		return `set workload.mode = "batch", or lose something else: fail-task, kill-worker`
	case a.Fault:
		return "faults of batch jobs are fail-task, kill-worker, freeze-worker, kill-jobmanager, drop-partition"
	}
	return "a batch job ends with finish or cancel"
}

// checkParallelism refuses a parallelism of 0 where nobody decides it.
func (d *decoder) checkParallelism(s *section) {
	if n := s.n.get("parallelism"); n != nil && n.scalar == int64(0) && d.w.Mode == Streaming {
		s.fail("parallelism", "must be between 1 and "+mostParallelism, "only a batch job's can be decided at run time")
	}
}

// checkBounded refuses a source without an end in a batch job.
func (d *decoder) checkBounded(v Vertex, s *section) {
	if d.w.Mode != Batch || v.Kind != Source {
		return
	}
	hint := ""
	switch {
	case v.Operator == "sequence" && v.Params.Records == 0:
		hint = "give it params.records"
	case v.Params.Loop:
		hint = "set params.loop = false"
	default:
		return
	}
	at := s.n.get("operator").at
	if p := s.n.get("params"); p != nil && p.form == tableForm {
		for _, k := range []string{"records", "loop"} {
			if n := p.get(k); n != nil {
				at = n.at
			}
		}
	}
	d.r.add(at.problem(s.path+".params", "", fmt.Sprintf("the source %q has no end, and a batch job ends when its sources do", v.ID), hint))
}

// canEqual tells whether two vertices have, or may get, the same parallelism.
func (w *Workload) canEqual(a, b int) bool {
	return a == b || w.Mode == Batch && (a == 0 || b == 0)
}

// share reads a number from 0 to 1, or a range of two.
func (s *section) share(key string) (low, high float64) {
	v := s.value(key)
	if v == nil {
		return 0, 0
	}
	one := func(n *node) (float64, bool) {
		switch x := n.scalar.(type) {
		case float64:
			return x, n.form == scalarForm && x >= 0 && x <= 1
		case int64:
			return float64(x), n.form == scalarForm && (x == 0 || x == 1)
		}
		return 0, false
	}
	const form = "must be a number between 0 and 1, or a range such as [0.1, 0.9]"
	if v.form != listForm {
		x, ok := one(v)
		if !ok {
			s.fail(key, form, "")
		}
		return x, x
	}
	if len(v.items) == 2 {
		a, okA := one(v.items[0])
		b, okB := one(v.items[1])
		if okA && okB && a < b {
			return a, b
		}
	}
	s.fail(key, form, "")
	return 0, 0
}
