package spec

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"benchrun/runtime/options"
)

// Defaults of a scenario's waits.
const (
	DefaultWaitTimeout = 60 * time.Second
	DefaultWhenTimeout = 30 * time.Second
	maxSteps           = 10000
)

var stepName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]*$`)
var numberedStep = regexp.MustCompile(`^step-[0-9]+$`)

// fileStep is a step as it stands in the file.
type fileStep struct {
	step   Step
	s      *section
	repeat int
}

func (d *decoder) scenario(n *node) {
	s := d.r.section(n, "scenario", tables[TableScenario]...)
	var steps []fileStep
	for i, x := range s.tables("step") {
		steps = append(steps, d.step(x, i, steps))
	}
	s.close()
	d.expandRepeats(steps)
	d.ending()
}

func (d *decoder) step(n *node, i int, before []fileStep) fileStep {
	number := fmt.Sprintf("step-%d", i+1)
	s := d.r.section(n, "scenario.step."+number, tables[TableStep]...)
	out := fileStep{s: s, repeat: 1, step: Step{Line: n.keyAt.problem("", "", "", "").Line}}
	name := s.str("name")
	out.step.Named = name != ""
	if out.step.Named {
		s.path = "scenario.step." + quoteSegment(name)
		switch {
		case !stepName.MatchString(name):
			s.fail("name", "must consist of letters, digits, - and _", "")
		case name == "start" || numberedStep.MatchString(name) && name != number:
			s.fail("name", "is a name that the lab gives itself", "choose another one")
		}
		for _, b := range before {
			if b.step.Name == name {
				s.fail("name", "is used twice", fmt.Sprintf("the first is on line %d", b.step.Line))
			}
		}
		out.step.Name = name
	} else {
		if s.has("name") && s.n.get("name").scalar == "" {
			s.fail("name", "must not be empty", "leave it out")
		}
		out.step.Name = number
	}
	out.repeat = int(s.integer("repeat"))
	switch {
	case s.has("do") && s.has("wait"):
		s.fail("wait", "a step has either do or wait, not both", "make two steps of it")
		s.value("do")
		s.value("wait")
	case s.has("do"):
		s.known = append(s.known, "wait")
		out.step.Do = d.do(s)
	case s.has("wait"):
		s.known = append(s.known, "do")
		out.step.Wait = d.wait(s.value("wait"), s.path+".wait")
	default:
		s.known = append(s.known, "do", "wait")
		d.r.add(n.keyAt.problem(s.path, "", "a step needs do or wait", ""))
	}
	s.misplaced()
	s.close()
	return out
}

// misplaced reports the keys of a step that are those of other actions.
func (s *section) misplaced() {
	for _, k := range s.n.keys {
		if _, exists := lookupKey(s.keys, k); !exists || slices.Contains(s.known, k) {
			continue
		}
		s.known = append(s.known, k)
		var of []string
		for _, a := range actions {
			if a.Later == "" && slices.Contains(a.Keys, k) {
				of = append(of, a.Name)
			}
		}
		hint := "remove it"
		if a := actionByName[s.str("do")]; a != nil && len(a.Keys) > 0 {
			hint = fmt.Sprintf("keys of %s are %s", a.Name, strings.Join(a.Keys, ", "))
		}
		s.r.add(s.n.table[k].keyAt.problem(s.full(k), "", "is a key of "+strings.Join(of, ", "), hint))
	}
}

// actionNames are the words that a step of this job may have.
func (d *decoder) actionNames() (names []string) {
	for _, a := range actions {
		if a.Later == "" && (a.Mode == "" || a.Mode == d.w.Mode) {
			names = append(names, a.Name)
		}
	}
	return names
}

// otherNames are what people call actions.
var otherNames = map[string]string{
	"kill-master": "kill-jobmanager", "kill-taskmanager": "kill-worker", "kill-task": "fail-task", "pause-worker": "freeze-worker", "end": "finish",
}

func (d *decoder) do(s *section) *Do {
	kind := s.str("do")
	a := actionByName[kind]
	if a == nil {
		if _, ok := s.n.get("do").scalar.(string); ok {
			words := d.actionNames()
			hint := "words are " + strings.Join(words, ", ")
			if near := options.Nearest(kind, words); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			} else if near := otherNames[kind]; near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			s.fail("do", "unknown action", hint)
		}
		s.known = append(s.known, s.n.keys...)
		return nil
	}
	if a.Later != "" {
		s.fail("do", "comes with a later version, with "+a.Later, "")
		s.known = append(s.known, a.Keys...)
		return nil
	}
	if !d.checkMode(s, a) {
		s.known = append(s.known, a.Keys...)
		return nil
	}
	o := &Do{Kind: kind}
	for _, k := range a.Keys {
		switch k {
		case "parallelism":
			o.Parallelism = d.rescale(s)
		case "vertex":
			o.Vertex = s.str("vertex")
			if !s.has("vertex") {
				s.fail("vertex", "is missing", "vertices are "+strings.Join(d.vertexIDs(), ", "))
			}
		case "subtask":
			o.Subtask = s.index("subtask")
		case "worker":
			o.Worker = s.index("worker")
		case "replace-after":
			o.ReplaceAfter = -1
			if s.has("replace-after") {
				o.ReplaceAfter = s.duration("replace-after")
			} else {
				s.value("replace-after")
			}
		case "down-for":
			o.DownFor = s.duration("down-for")
		case "for":
			o.For = s.duration("for")
			if !s.has("for") {
				s.fail("for", "is missing", `for how long, such as for = "5 s"`)
			}
		case "kind":
			o.StorageKind = s.str("kind")
		case "when":
			o.When = d.when(s.value("when"), s.path+".when")
		}
	}
	return o
}

// index reads a number from 0 or "random", which is the default.
func (s *section) index(key string) int {
	v := s.value(key)
	if v == nil || v.scalar == "random" {
		return Random
	}
	if n, ok := v.scalar.(int64); ok && n >= 0 && n <= math.MaxInt32 {
		return int(n)
	}
	s.fail(key, `must be a number from 0, or "random"`, "")
	return Random
}

func (d *decoder) rescale(s *section) map[string]int {
	v := s.value("parallelism")
	if v == nil {
		s.fail("parallelism", "is missing", "write parallelism = { vertex = 6 }")
		return nil
	}
	p := d.r.section(v, s.path+".parallelism")
	if p.n == nil {
		return nil
	}
	out := map[string]int{}
	for _, id := range v.keys {
		if d.w.Vertex(id) == nil && d.wrong.shape {
			continue
		}
		if d.w.Vertex(id) == nil {
			hint := "vertices are " + strings.Join(d.vertexIDs(), ", ")
			if near := options.Nearest(id, d.vertexIDs()); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			d.r.add(v.table[id].keyAt.problem(p.full(id), "", "there is no such vertex", hint))
			continue
		}
		p.keys = append(p.keys, Key{Name: id, Low: "1", High: mostParallelism})
		n := int(p.integer(id))
		if n > d.w.MaxParallelism {
			p.fail(id, fmt.Sprintf("must not be above max-parallelism, which is %d", d.w.MaxParallelism), "raise workload.max-parallelism")
		}
		if n > 0 {
			out[id] = n
		}
	}
	if len(v.keys) == 0 {
		s.fail("parallelism", "names no vertex", "write parallelism = { vertex = 6 }")
	}
	return out
}

func (d *decoder) when(n *node, path string) *When {
	if n == nil {
		return nil
	}
	s := d.r.section(n, path, tables[TableWhen]...)
	if s.n == nil {
		return &When{Restored: -1, Timeout: DefaultWhenTimeout}
	}
	w := &When{
		DuringRecovery: s.boolean("during-recovery"),
		Restored:       -1,
		Checkpoint:     s.str("checkpoint"),
		Timeout:        s.duration("timeout"),
	}
	if x := s.number("restored"); s.has("restored") {
		w.Restored = x
	}
	s.close()
	if d.mode(s, "write when = { during-recovery = true }") {
		return w
	}
	count := 0
	for _, set := range []bool{w.DuringRecovery, s.has("restored"), s.has("checkpoint")} {
		if set {
			count++
		}
	}
	if count != 1 {
		d.r.add(n.at.problem(path, n.show(), "needs exactly one condition", conditions[d.w.Mode].when))
	}
	return w
}

func (d *decoder) wait(n *node, path string) *Wait {
	s := d.r.section(n, path, tables[TableCondition]...)
	if s.n == nil {
		return &Wait{Timeout: DefaultWaitTimeout}
	}
	w := &Wait{
		Running:         s.boolean("running"),
		Checkpoints:     int(s.integer("checkpoints")),
		Records:         s.integer("records"),
		FirstCheckpoint: s.boolean("first-checkpoint"),
		Drained:         s.boolean("drained"),
		CaughtUp:        s.boolean("caught-up"),
		InFlight:        s.size("in-flight"),
		Elapsed:         s.duration("elapsed"),
		Timeout:         s.duration("timeout"),
	}
	w.Progress, w.ProgressTo = s.share("progress")
	s.close()
	if d.mode(s, conditions[d.w.Mode].instead) {
		return w
	}
	if !slices.ContainsFunc(s.n.keys, func(k string) bool { return k != "timeout" }) {
		d.r.add(n.at.problem(path, n.show(), "waits for nothing", "name a condition such as "+conditions[d.w.Mode].wait))
	}
	if w.Elapsed >= w.Timeout {
		s.fail("elapsed", fmt.Sprintf("is not below the step's timeout, which is %s", options.FormatDuration(w.Timeout)), "raise timeout")
	}
	interval := options.CheckpointInterval.Get(d.w.Options)
	if interval == 0 && !d.wrong.options {
		for _, k := range []string{"checkpoints", "first-checkpoint", "in-flight"} {
			if s.has(k) {
				s.fail(k, "can never come: checkpoints are off", `set options."execution.checkpointing.interval"`)
			}
		}
	}
	if w.CaughtUp && !d.wrong.numbers && !slices.ContainsFunc(d.w.Vertices, func(v Vertex) bool { return v.Params.Rate > 0 }) {
		s.fail("caught-up", "can never come: no source has a rate, so none is ever late", "give a sequence a rate")
	}
	return w
}

// expandRepeats writes the repeats out. A repeated step takes the waits after
// it along, up to the next step that has a name in the file; so does one that is
// left out.
func (d *decoder) expandRepeats(steps []fileStep) {
	add := func(f fileStep, round int) {
		step := f.step
		if round > 1 {
			step.Name = fmt.Sprintf("%s#%d", step.Name, round)
		}
		d.w.Steps = append(d.w.Steps, step)
		d.steps = append(d.steps, f.s)
	}
	for i := 0; i < len(steps); {
		end := i + 1
		for steps[i].repeat != 1 && end < len(steps) && !steps[end].step.Named && steps[end].step.Wait != nil {
			end++
		}
		if len(d.w.Steps)+(end-i)*steps[i].repeat > maxSteps {
			steps[i].s.fail("repeat", fmt.Sprintf("makes more than %d steps", maxSteps), "")
			return
		}
		for round := 1; round <= steps[i].repeat; round++ {
			for _, f := range steps[i:end] {
				add(f, round)
			}
		}
		i = end
	}
}

// ending makes sure that the scenario ends the job: nothing comes after a
// step that does, and finish is added where there is none.
func (d *decoder) ending() {
	for i, step := range d.w.Steps {
		if step.Do == nil {
			continue
		}
		switch step.Do.Kind {
		case "finish", "cancel", "stop-with-savepoint":
			if i < len(d.w.Steps)-1 {
				next := d.steps[i+1]
				d.r.add(next.n.keyAt.problem(next.path, "", fmt.Sprintf("is never reached: %q ends the job", step.Do.Kind), "remove it, or move it up"))
			}
			return
		}
	}
	name := "finish"
	for _, s := range d.w.Steps {
		if s.Name == name {
			name = fmt.Sprintf("step-%d", len(d.w.Steps)+1)
		}
	}
	d.w.Steps = append(d.w.Steps, Step{Name: name, Do: &Do{Kind: "finish"}})
	d.steps = append(d.steps, d.r.section(nil, "scenario.step."+name))
}
