package spec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"benchrun/runtime/options"
)

// scene is what is there at a step of a scenario, as far as it is certain: what
// may be so, is no mistake.
type scene struct {
	parallelism map[string]int
	recovers    bool // something may recover from here on
	workers     int  // those that live, and those that are to come
	settled     bool // streaming: all tasks run, so the busy workers are known
	master      *absence
	replaced    []absence // workers
	progress    reached
}

// absence is the time for which a fault takes something away.
type absence struct {
	step string
	time time.Duration
	left time.Duration
}

// certainly is how much longer an absence must be than what passes meanwhile, for
// faults take their time, too.
const certainly = 100 * time.Millisecond

// reached is what a wait for progress has reached that nothing has taken back.
type reached struct {
	share float64 // 0: nothing that is known
	step  string
	of    *section // of the step
	at    *node    // of the share
	path  string
	fault string // the first step since then, which took nothing back, if any
}

// checkSteps checks the scenario against the job and against itself: vertices,
// subtasks, the parallelism that rescales lead to, and who is there to be hit.
func (d *decoder) checkSteps() {
	now := scene{parallelism: d.w.parallelism(), workers: d.w.Cluster.Workers, recovers: options.RecoveryPath.Get(d.w.Options) != ""}
	for i, step := range d.w.Steps {
		switch s := d.steps[i]; {
		case step.Do != nil:
			d.checkDo(&now, step, s)
		case step.Wait != nil:
			d.checkWait(&now, step, s)
		default: // nobody knows what was meant
			now.passUnknown()
			now.recovers, now.settled, now.progress, now.workers = true, false, reached{}, max(now.workers, 1)
		}
	}
}

func (d *decoder) checkWait(now *scene, step Step, s *section) {
	w, n := step.Wait, s.n.get("wait")
	if n == nil || n.form != tableForm {
		return // that is told
	}
	others := slices.DeleteFunc(slices.Clone(n.keys), func(k string) bool { return k == "timeout" })
	if slices.Equal(others, []string{"elapsed"}) {
		now.pass(w.Elapsed)
	} else {
		now.passUnknown()
	}
	now.settled = now.settled || d.w.Mode == Streaming && (w.Running || w.FirstCheckpoint || w.Drained)
	if w.Progress == 0 {
		return
	}
	at, path, before := n.get("progress"), s.full("wait")+".progress", now.progress
	if before.share > 0 && w.ProgressTo <= before.share && slices.Equal(others, []string{"progress"}) {
		d.warnOver(at, path, s, before)
	}
	if w.Progress > before.share {
		now.progress = reached{share: w.Progress, step: step.called(), of: s, at: at, path: path}
	}
}

// warnOver tells of a wait for a share that has been reached: it is over at once.
func (d *decoder) warnOver(at *node, path string, s *section, before reached) {
	message, hint := fmt.Sprintf("waits for nothing: %s has waited for %v", before.step, before.share), "remove the step"
	if before.share < 1 {
		hint = fmt.Sprintf("name a share above %v, or remove the step", before.share)
	}
	if before.of == s {
		message, hint = fmt.Sprintf("waits for nothing when it is repeated: %v has been reached by then", before.share), "write the rounds out, each with a share of its own"
	}
	why := "progress only grows"
	if before.fault != "" {
		message, why = "most likely "+message, before.fault+" takes no work back while job recovery is on"
	}
	d.r.warn(at.at.problem(path, at.show(), message+", and "+why, hint))
}

func (d *decoder) checkDo(now *scene, step Step, s *section) {
	o := step.Do
	if o.When != nil && (o.When.DuringRecovery || o.When.Restored >= 0 && d.w.Mode == Streaming) && !now.recovers {
		s.fail("when", "can never come: nothing recovers before this step", "put a fault before it")
	}
	if !o.atOnce() {
		now.passUnknown()
	}
	switch o.Kind {
	case "rescale":
		d.checkRescale(now, o, s)
	case "fail-task", "drop-partition":
		d.checkTask(now, o, s)
	case "kill-jobmanager":
		d.checkMaster(now, step, s)
	case "kill-worker", "freeze-worker":
		d.checkWorker(now, step, s)
	}
	if !o.IsFault() {
		return
	}
	now.recovers, now.settled = true, false
	if p := &now.progress; p.share == 1 {
		d.r.warn(p.at.at.problem(p.path, p.at.show(), fmt.Sprintf("comes when all is consumed and the job ends: %s may come too late", step.called()), "name a share below 1, such as 0.95"))
		*p = reached{}
	} else if p.share > 0 {
		if p.fault == "" { // one is enough, and of a step that is repeated the first
			p.fault = step.called()
		}
		if o.Kind != "kill-jobmanager" || !options.BatchJobRecovery.Get(d.w.Options) || options.BatchRecoveryMode.Get(d.w.Options) != "hardened" {
			*p = reached{}
		}
	}
}

// atOnce tells whether a step acts as soon as it begins and is over then. Others
// wait: for their moment, for a master, for an end.
func (o *Do) atOnce() bool {
	return o.When == nil && slices.Contains([]string{"kill-worker", "freeze-worker", "kill-jobmanager", "fail-storage"}, o.Kind)
}

// called is a step as problems speak of it.
func (s *Step) called() string {
	if s.Named {
		return "step " + s.Name
	}
	return s.Name
}

// pass lets time pass.
func (now *scene) pass(t time.Duration) {
	if now.master != nil {
		if now.master.left -= t; now.master.left <= certainly {
			now.master = nil
		}
	}
	for i := range now.replaced {
		now.replaced[i].left -= t
	}
	now.replaced = slices.DeleteFunc(now.replaced, func(a absence) bool { return a.left <= certainly })
}

// passUnknown lets pass what nobody knows: whoever was to come back may be there.
func (now *scene) passUnknown() { now.master, now.replaced = nil, nil }

func (d *decoder) checkRescale(now *scene, o *Do, s *section) {
	changes := len(o.Parallelism) == 0 // then something else is wrong
	for id, p := range o.Parallelism {
		changes = changes || now.parallelism[id] != p
		now.parallelism[id] = p
	}
	if !changes {
		s.fail("parallelism", "changes nothing: every vertex has this parallelism already", "")
	}
	for j, e := range d.w.Edges {
		from, to := now.parallelism[e.From], now.parallelism[e.To]
		if e.Partitioner == "forward" && !d.wrong.edges[j] && from != to && from > 0 && to > 0 {
			s.fail("parallelism", fmt.Sprintf("the edge %s -> %s is forward and needs equal parallelism, but they would have %d and %d", e.From, e.To, from, to),
				"rescale both, or give the edge the partitioner rescale or rebalance")
		}
	}
}

func (d *decoder) checkTask(now *scene, o *Do, s *section) {
	if o.Vertex == "" || d.wrong.shape {
		return
	}
	n := now.parallelism[o.Vertex]
	switch {
	case d.w.Vertex(o.Vertex) == nil:
		hint := "vertices are " + strings.Join(d.vertexIDs(), ", ")
		if near := options.Nearest(o.Vertex, d.vertexIDs()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		s.fail("vertex", "there is no such vertex", hint)
	case o.Kind == "drop-partition" && d.w.Mode == Batch && !d.partitions(o.Vertex):
		d.failUnpartitioned(o.Vertex, s)
	case o.Subtask >= n && n > 0:
		s.fail("subtask", fmt.Sprintf("%s has %d subtasks at this step, 0 to %d", o.Vertex, n, n-1), "")
	}
}

// partitions tells whether the tasks of a vertex, with all that is chained into
// them, leave partitions.
func (d *decoder) partitions(id string) bool {
	head := d.w.ChainHead(id)
	return slices.ContainsFunc(d.w.Edges, func(e Edge) bool { return d.w.ChainHead(e.From) == head && !d.w.Chained(e) })
}

func (d *decoder) failUnpartitioned(id string, s *section) {
	why := "it is a sink"
	if len(d.w.Outputs(id)) > 0 {
		why = "it is in one task with a sink, and what goes between them is never on a disk"
	} else if head := d.w.ChainHead(id); head != id {
		why = fmt.Sprintf("it is a sink, in one task with %s", head)
	}
	var others []string
	for _, v := range d.vertexIDs() {
		if d.partitions(v) {
			others = append(others, v)
		}
	}
	hint := "" // nothing of the job does
	if len(others) > 0 {
		hint = "partitions are left by " + strings.Join(others, ", ")
	}
	s.fail("vertex", "leaves no partition that could be lost: "+why, hint)
}

func (d *decoder) checkMaster(now *scene, step Step, s *section) {
	if d.w.Cluster.Target == "embedded" && d.w.Mode == Streaming {
		d.r.warn(s.problem("do", "the master of a streaming job on target \"embedded\" lives in the process that measures and cannot be killed: the trials will be unsupported", `set cluster.target = "process", or run with --target process`))
	}
	if a := now.master; a != nil {
		s.fail("do", fmt.Sprintf("there is no master to kill: %s has killed it, and the next one comes after %s", a.step, options.FormatDuration(a.time)),
			`put wait = { running = true } before it, or give it when = { during-recovery = true }`)
		return
	}
	if down := step.Do.DownFor; down > certainly {
		now.master = &absence{step.called(), down, down}
	}
}

func (d *decoder) checkWorker(now *scene, step Step, s *section) {
	o := step.Do
	live := max(0, now.workers-len(now.replaced))
	busy := live
	if most, _ := maxParallelism(now.parallelism); now.settled && most > 0 && !d.wrong.numbers {
		busy = min(live, most)
	}
	hint := ""
	switch {
	case busy == 1:
		hint = `write 0, or "random"`
	case busy > 1:
		hint = fmt.Sprintf("write a number from 0 to %d, or \"random\"", busy-1)
	}
	switch {
	case d.wrong.numbers:
	case live == 0 || o.Worker >= live:
		message := fmt.Sprintf("there are %d workers at this step", live)
		switch live {
		case 0:
			message = "there is no worker at this step"
		case 1:
			message = "there is 1 worker at this step"
		}
		if n := len(now.replaced); n > 0 {
			a := now.replaced[n-1]
			message += fmt.Sprintf(": what replaces the one that dies in %s comes after %s", a.step, options.FormatDuration(a.time))
			hint = "let that time pass before it"
			if wait := a.time + time.Second; wait < DefaultWaitTimeout {
				hint += fmt.Sprintf(": wait = { elapsed = %q }", options.FormatDuration(wait))
			}
		}
		s.fail(o.aims(s), message, hint)
	case o.Worker >= busy:
		s.fail("worker", fmt.Sprintf("only %d of %d workers run a task at this step, and it is among these that workers are counted", busy, live), hint)
	}
	if o.Kind != "kill-worker" {
		return
	}
	switch {
	case o.ReplaceAfter < 0:
		now.workers--
		d.checkRemaining(s, now.workers, now.parallelism)
	case o.ReplaceAfter > certainly:
		now.replaced = append(now.replaced, absence{step.called(), o.ReplaceAfter, o.ReplaceAfter})
	}
}

// aims is the key that says which worker a fault hits.
func (o *Do) aims(s *section) string {
	if s.has("worker") {
		return "worker"
	}
	return "do"
}

// checkRemaining warns when a job cannot go on after a worker is gone.
func (d *decoder) checkRemaining(s *section, workers int, now map[string]int) {
	need, vertex := maxParallelism(now)
	if d.w.Mode == Batch {
		need, vertex = 1, "a task" // they run in waves
	}
	if have := workers * d.w.Cluster.SlotsPerWorker; have < need {
		d.r.warn(s.problem("do", fmt.Sprintf("after this %d slots are left, but %s needs %d: the job cannot go on at its parallelism", max(0, have), vertex, need),
			"set replace-after, or raise cluster.slots-per-worker"))
	}
}
