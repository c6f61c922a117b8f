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
var batchOptions = []string{"execution.batch.", "job-event.store.", "slow-task-detector.", "slot.request.",
	"taskmanager.network.compression.", "taskmanager.network.sort-shuffle.", "taskmanager.memory.framework.off-heap.batch-shuffle."}

// streamingOptions mean nothing in batch mode.
var streamingOptions = []string{"execution.checkpointing.", "execution.state-recovery.", "jobmanager.adaptive-scheduler.", "pipeline.sources.", "pipeline.auto-watermark-interval"}

// counterparts are options that mean in the other mode what another one means in this.
var counterparts = map[string]string{
	options.SlotRequestTimeout.Key():        options.SubmissionResourceTimeout.Key(),
	options.SubmissionResourceTimeout.Key(): options.SlotRequestTimeout.Key(),
}

// checkOptions refuses options of the other mode, unless they say what is so
// anyway.
func (d *decoder) checkOptions() {
	if d.wrong.mode {
		return
	}
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
		help := hint
		if other := counterparts[info.Key]; other != "" {
			help = fmt.Sprintf("set %q", other)
		}
		d.r.add(n.keyAt.problem("options."+quoteSegment(key), n.show(), why, help))
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
func (d *decoder) mode(s *section, instead string) (wrong bool) {
	for _, k := range s.n.keys {
		want := batchConditions[k]
		if want == "" || want == d.w.Mode || d.wrong.mode {
			continue
		}
		why := "can never come: a batch job takes no checkpoints and has nothing in flight"
		if want == Batch {
			why = "can never come: it is for batch jobs, and this one is streaming"
		}
		s.fail(k, why, instead)
		wrong = true
	}
	return wrong
}

// conditions are examples of what a wait and a when may ask for in a mode.
var conditions = map[string]struct{ wait, when, instead string }{
	Streaming: {"checkpoints = 1", `during-recovery = true, restored = 0.5 or checkpoint = "in-progress"`, "wait for checkpoints, running, records or elapsed"},
	Batch:     {"progress = 0.5", "during-recovery = true", "wait for progress, running, records or elapsed"},
}

// checkMode refuses an action of the other mode.
func (d *decoder) checkMode(s *section, a *Action) (right bool) {
	switch {
	case a.Mode == "" || a.Mode == d.w.Mode || d.wrong.mode:
		return true
	case a.Mode == Batch:
		s.fail("do", "is for batch jobs, and this one is streaming", a.otherwise())
	default:
		s.fail("do", "is for streaming jobs, and this one is batch", a.otherwise())
	}
	return false
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
	if n := s.n.get("parallelism"); n != nil && n.scalar == int64(0) && d.w.Mode == Streaming && !d.wrong.mode {
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
		if ok {
			return x, x
		}
		hint := ""
		if n, whole := v.scalar.(int64); whole && n > 1 && n < 100 {
			hint = fmt.Sprintf("%d %% is %v", n, float64(n)/100)
		}
		s.fail(key, form, hint)
		return 0, 0
	}
	hint := ""
	if len(v.items) == 2 {
		a, okA := one(v.items[0])
		b, okB := one(v.items[1])
		switch {
		case okA && okB && a < b:
			return a, b
		case okA && okB && a > b:
			hint = fmt.Sprintf("the smaller one first: [%v, %v]", b, a)
		case okA && okB:
			hint = fmt.Sprintf("write %v", a)
		}
	}
	s.fail(key, form, hint)
	return 0, 0
}
