package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/page"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"

	"github.com/spf13/cobra"
)

// word is a word of reports and workload files that no registry holds.
type word struct{ name, kind, help string }

var targetWords = []word{
	{"embedded", "target", "the whole cluster in the trial's process; workers exchange over sockets all the same"},
	{"process", "target", "master and workers are processes of their own, which kill-worker, freeze-worker and kill-jobmanager really kill and stop"},
	{"flink", "target", "a real Apache Flink cluster, over REST [comes with a later version]"},
}

var words = append([]word{
	{"faster", "verdict", "better in the metric's direction; what it takes is what slower takes, the other way round"},
	{"slower", "verdict", "worse in the metric's direction, and all of this holds: the median ratio is beyond the threshold, the interval excludes no change, and the change is larger than the noise of so many pairs; where pairs are few or scatter much, an exact sign-flip test must agree"},
	{"same", "verdict", "the whole interval of the ratio lies inside the threshold band"},
	{"inconclusive", "verdict", "neither slower, faster nor the same can be said: more blocks, or a quieter machine"},
	{"cleared", "verdict", "alarmed at the first look of gate --confirm, and no longer after the blocks that were run again"},
	{"to be confirmed", "verdict", "might be slower at the first look of gate --confirm: more blocks of the cell are run before it counts"},
	{"threshold", "word", "how much a metric may differ and still count as the same: a share and an amount, from results/baselines/thresholds.toml or the default of a tenth"},
	{"pairs", "word", "blocks in which both sides have the metric; the ratio is formed within each, so what the machine did to both cancels"},
	{"interval", "word", "where the median ratio lies at the level that stands beside it; a gate shares its error among the cells that it judges, so more cells mean wider intervals"},
	{"sequential", "verdict", "the runs are of different times, so the machine may have changed between them; slower then needs a clearer sign"},
	{"ok", "outcome", "the trial went through its scenario and its output is right; only such trials are measurements"},
	{"timeout", "outcome", "a wait, a fault's moment or the whole trial took longer than its time-out; the phase names the step"},
	{"failed", "outcome", "the job or the trial's process failed; the log has more"},
	{"incorrect", "outcome", "records were lost, duplicated or changed: exit code 6"},
	{"misconfigured", "outcome", "the running tasks use other options than the workload asks for"},
	{"unsupported", "outcome", "the target cannot do what the workload asks for"},
	{"interrupted", "outcome", "the run was stopped while the trial ran; --resume runs it again"},
	{"upstream", "recovery path", "output buffers are restored where they were, upstream, and sent again; input buffers downstream. Tasks run early; a checkpoint is complete only when all of it was processed"},
	{"downstream", "recovery path", "with R: the downstream tasks read the upstream's in-flight output, too; nothing is sent again. Tasks run when all of it is processed"},
	{"during", "recovery path", "with R and D: restored data are filtered in the background; tasks run at once and a checkpoint can be taken at any moment, with what is not processed yet in it"},
	{"none", "recovery path", "no in-flight data were restored"},
	{"full", "recovery path", "batch: the new master began the job anew, because there was no log of it, none of use, or one that could not be read and that --from-scratch wiped"},
	{"event-log", "recovery path", "batch, with J: the new master read the log of the job, kept what had finished and is still there, and went on"},
	{"running", "condition of a wait", "every task is RUNNING, after the restart that the last fault caused; in batch mode one task is, of the new execution"},
	{"progress", "condition of a wait", "batch: so much of the records that the job has to consume is consumed, the mean over its vertices; of a range each block draws a place"},
	{"checkpoints", "condition of a wait", "so many checkpoints were completed since the last fault"},
	{"records", "condition of a wait", "so many records arrived at sinks since the last fault"},
	{"first-checkpoint", "condition of a wait", "a checkpoint newer than the restored one is complete"},
	{"drained", "condition of a wait", "all restored in-flight data were processed"},
	{"caught-up", "condition of a wait", "the lag of the rated sources is back at what it was before the fault, for 2 s"},
	{"in-flight", "condition of a wait", "the newest complete checkpoint holds so much in-flight data; without unaligned checkpoints, so much was queued when it completed"},
	{"elapsed", "condition of a wait", "so much time has passed since the step began"},
	{"cell", "word", "one combination of the matrix, with a stable id such as R=true,D=true"},
	{"block", "word", "every cell (and build) once, in an order shuffled from the seed; blocks make trials comparable that ran at about the same time"},
	{"trial", "word", "one cell in one block: a fresh process, a fresh cluster, one pass through the scenario"},
	{"warm-up", "word", "a block that is run and kept, and not measured"},
	{"t0", "word", "the moment of a fault on the trial's monotonic clock; all times of recovery count from it"},
	{"control", "word", "a cell that breaks a rule between options on purpose (run.include-invalid): it must not differ from the cell without the option"},
	{"streaming", "mode of a job", "records flow until the sources are told to stop; checkpoints make it recoverable, and in-flight data are what recovery is about"},
	{"batch", "mode of a job", "sources have an end, and a stage begins when what it reads is complete; finished output on the workers' disks and, with J, the log of the master make it recoverable"},
	{"hardened", "mode of job recovery", "the default: records of the log have a checksum, a sequence and the master's epoch; the wait ends when all workers that live have answered; tasks that still run are adopted; nothing finished is thrown away for the log's sake"},
	{"faithful", "mode of job recovery", "as Flink does it, its weaknesses included: a log without checksums, finished tasks behind the last snapshot run again, running ones always do, and a missing partition costs the whole wait"},
	{"adopted", "word", "a batch task that ran on while no master led, and goes on under the next one (mode hardened)"},
	{"useful work", "word", "records of finished batch tasks whose output is still there; what time_to_parity_s and the curves of progress count"},
	{"control recovery", "word", "from the loss of the master to the first task under the next one, in phases that add up: detect, elect, replay the log, wait for partitions, schedule; see control_recovery_s"},
	{"from-scratch", "flag of run", "a new master that cannot read the log of its batch job (damaged in the middle, of another job or version) fails the trial with file and offset; with --from-scratch it wipes the log and the job begins anew, which is recovery path full and an event with the reason. A log that can be read is gone on from as without the flag. A streaming workload is refused with it: its masters keep no log"},
	{"unproved", "word", "a job whose only sink discards shows nothing about its output; its trials have no correctness"},
}, targetWords...)

func (a *app) explainCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "explain METRIC|OPTION|VERDICT|FAULT",
		Short: "explain a metric, an option, a fault, an operator, a key or a word of the reports",
		Example: `  benchrun explain time_to_first_checkpoint_s
  benchrun explain R
  benchrun explain kill-worker
  benchrun explain faithful`,
		Args: needs("a word"),
		RunE: func(c *cobra.Command, args []string) error {
			for i, name := range args {
				x, ok := lookup(name)
				if !ok {
					return fmt.Errorf("nothing is called %q%s", name, nearestWord(name))
				}
				if asJSON {
					if err := a.document(x); err != nil {
						return err
					}
					continue
				}
				if i > 0 {
					fmt.Fprintln(a.stdout)
				}
				x.write(a.stdout)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return c
}

func nearestWord(name string) string {
	if n := options.Nearest(name, allWords()); n != "" {
		return fmt.Sprintf("; did you mean %q?", n)
	}
	return "; benchrun list names options, metrics, faults and operators"
}

// explanation is what explain says about one thing.
type explanation struct {
	Name  string     `json:"name"`
	Kind  string     `json:"kind"`
	Help  string     `json:"help"`
	Facts [][]string `json:"facts,omitempty"` // name, value
}

func (x explanation) write(out io.Writer) {
	fmt.Fprintf(out, "%s (%s)\n", x.Name, x.Kind)
	for _, line := range wrap(x.Help, 78) {
		fmt.Fprintf(out, "  %s\n", line)
	}
	for _, f := range x.Facts {
		fmt.Fprintf(out, "  %s: %s\n", f[0], f[1])
	}
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += w
	}
	return append(lines, line)
}

func lookup(name string) (explanation, bool) {
	for _, i := range options.All() {
		if i.Key == name || i.Short == name && name != "" || slices.Contains(i.Aliases, name) || options.Short(i.Key, nil) == name {
			return explainOption(i), true
		}
	}
	if m, ok := result.LookupMetric(name); ok {
		from := "the whole trial"
		if m.PerFault {
			from = "a fault's t0"
		}
		return explanation{m.Name, "metric", m.Help, [][]string{{"unit", m.Unit}, {"direction", betterText(m.Better)}, {"resolution", fmt.Sprintf("%g %s", m.Resolution, m.Unit)}, {"counted from", from}}}, true
	}
	if x, ok := spec.LookupAction(name); ok {
		kind := "action: no t0"
		if x.Fault {
			kind = "fault"
		}
		e := explanation{x.Name, kind, x.Help + laterText(x.Later), nil}
		if x.Mode != "" {
			e.Facts = append(e.Facts, []string{"jobs", x.Mode + " only"})
		}
		if len(x.Keys) > 0 {
			e.Facts = append(e.Facts, []string{"keys of the step", strings.Join(x.Keys, ", ")})
		}
		return e, true
	}
	if o, ok := spec.LookupOperator(name); ok {
		e := explanation{o.Name, string(o.Kind) + " operator", o.Help, nil}
		switch {
		case o.BatchOnly:
			e.Facts = append(e.Facts, []string{"jobs", spec.Batch + " only"})
		case o.Batch != "":
			e.Facts = append(e.Facts, []string{"in batch mode", o.Batch})
		}
		for _, p := range o.Params {
			value := p.Help
			if p.Default != "" {
				value += " (default " + p.Default + ")"
			}
			e.Facts = append(e.Facts, []string{p.Name, value})
		}
		return e, true
	}
	for _, w := range slices.Concat(words, headings) {
		if w.name == name {
			e := explanation{w.name, w.kind, w.help, nil}
			for _, u := range usesOfKey(name) {
				e.Facts = append(e.Facts, []string{"key of workload files, " + u[0], u[1]})
			}
			return e, true
		}
	}
	for _, m := range slices.Concat(result.Metrics(), result.DerivedMetrics()) {
		if isTitle(name, m) {
			x, ok := lookup(m.Name)
			x.Name = name + ": " + m.Name
			return x, ok
		}
	}
	if e, ok := explainKey(name); ok {
		return e, true
	}
	return explainLater(name)
}

// isTitle tells whether pages or tables call a metric by a name.
func isTitle(name string, m result.Metric) bool {
	return page.InWords(m.Name) == name || name != "" && tableTitle(m.Name) == name
}

// explainLater explains what heads the columns of a later fault, <step>.<title> in
// tables and <step>: <title> on pages.
func explainLater(name string) (explanation, bool) {
	for _, mark := range []string{".", ": "} {
		i := strings.LastIndex(name, mark)
		if i <= 0 {
			continue
		}
		title := name[i+len(mark):]
		if title == "recovery" {
			return lookup(title)
		}
		for _, m := range result.Metrics() {
			if m.PerFault && isTitle(title, m) {
				x, ok := lookup(m.Name)
				x.Name = name + ": " + m.Name
				return x, ok
			}
		}
	}
	return explanation{}, false
}

// usesOfKey are the tables of workload files that have a key, each with what the key
// means there.
func usesOfKey(name string) (uses [][]string) {
	for _, table := range spec.Tables() {
		for _, k := range spec.Keys(table) {
			if k.Name != name || k.Help == "" {
				continue
			}
			help := k.Help
			if k.Default != "" {
				help += " (default " + k.Default + ")"
			}
			if table == spec.TableFile {
				table = "at the top"
			}
			uses = append(uses, []string{table, help})
		}
	}
	return uses
}

// explainKey tells of a key of workload files, of all tables that have it.
func explainKey(name string) (explanation, bool) {
	e := explanation{Name: name, Kind: "key of workload files", Help: "has a meaning in several tables", Facts: usesOfKey(name)}
	if len(e.Facts) == 1 {
		e.Help, e.Facts = e.Facts[0][1], [][]string{{"table", e.Facts[0][0]}}
	}
	return e, len(e.Facts) > 0
}

func explainOption(i *options.Info) explanation {
	e := explanation{i.Key, "option", i.Help, [][]string{{"type", string(i.Type)}, {"default", i.DefaultText()}}}
	add := func(name string, values []string) {
		if len(values) > 0 {
			e.Facts = append(e.Facts, []string{name, strings.Join(values, ", ")})
		}
	}
	if i.Short != "" {
		add("short name", []string{i.Short})
	}
	add("values", i.Enum)
	add("also written", i.Aliases)
	add("requires", i.Requires)
	if i.Inert != nil {
		condition := i.Inert.Key + " is set"
		if len(i.Inert.Values) > 0 {
			condition = fmt.Sprintf("%s = %v", i.Inert.Key, i.Inert.Values[0])
		}
		add("has an effect only if", []string{condition})
	}
	return e
}

// allWords lists everything that explain knows.
func allWords() []string {
	var out []string
	for _, i := range options.All() {
		out = append(out, i.Key)
		if i.Short != "" {
			out = append(out, i.Short)
		}
	}
	for _, m := range slices.Concat(result.Metrics(), result.DerivedMetrics()) {
		out = append(out, m.Name, page.InWords(m.Name))
		if title := tableTitle(m.Name); title != "" && title != page.InWords(m.Name) {
			out = append(out, title)
		}
	}
	for _, x := range spec.Actions() {
		out = append(out, x.Name)
	}
	for _, o := range spec.Operators() {
		out = append(out, o.Name)
	}
	for _, w := range slices.Concat(words, headings) {
		out = append(out, w.name)
	}
	for _, table := range spec.Tables() {
		for _, k := range spec.Keys(table) {
			if !slices.Contains(out, k.Name) {
				out = append(out, k.Name)
			}
		}
	}
	return out
}
