package spec

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"benchrun/runtime/options"
)

// Key describes one key of a table of the format: the only source of its type,
// default and limits, for reading and for the schema that editors use. Values
// are written as in a file.
type Key struct {
	Name     string
	Type     ParamType
	Default  string   // empty with Required or where absence means something
	Low      string   // smallest value; empty: none below zero, and no limit for numbers
	High     string   // largest value; empty: no limit
	Words    []string // of a string: the legal ones
	Required bool
	Help     string
}

// Names of the format's tables, as Keys lists them.
const (
	TableFile      = ""
	TableRun       = "run"
	TableCluster   = "cluster"
	TableWorkload  = "workload"
	TableVertex    = "workload.vertex"
	TableEdge      = "workload.edge"
	TableScenario  = "scenario"
	TableStep      = "scenario.step"
	TableCondition = "scenario.step.wait"
	TableWhen      = "scenario.step.when"
)

const mostParallelism = "32768"

// tables holds every key of the format but options, axes, parameters of
// operators (Operators) and selectors of cells in [thresholds].
var tables = map[string][]Key{
	TableFile: {
		{Name: "schema", Type: ParamCount, Required: true, Low: "1", High: "1", Help: "version of the format"},
		{Name: "name", Type: ParamString, Required: true, Help: "unique within a run: a-z, 0-9 and -"},
		{Name: "description", Type: ParamString, Help: "one line for tables and reports"},
		{Name: "tags", Type: ParamStrings, Help: "for --only tag:..."},
		{Name: TableRun, Type: ParamTable, Help: "how often and how long"},
		{Name: TableCluster, Type: ParamTable, Help: "what the job runs on"},
		{Name: "options", Type: ParamTable, Help: "options of every cell, with Flink's keys"},
		{Name: "matrix", Type: ParamTable, Help: "axes: lists of values of options, or of paths of this file; their product is the set of cells"},
		{Name: "matrix-exclude", Type: ParamTables, Help: "values of axes whose cells are left out"},
		{Name: "matrix-include", Type: ParamTables, Help: "one more cell: a value for every axis"},
		{Name: TableWorkload, Type: ParamTable, Required: true, Help: "the job"},
		{Name: TableScenario, Type: ParamTable, Help: "what is done to the job, step by step"},
		{Name: "thresholds", Type: ParamTable, Help: "absolute limits, by the cells that they are for"},
	},
	TableRun: {
		{Name: "repeats", Type: ParamCount, Default: "5", Low: "1", High: "10000", Help: "measured blocks"},
		{Name: "warmup", Type: ParamCount, Default: "1", High: "1000", Help: "blocks before them that do not count"},
		{Name: "seed", Type: ParamCount, Default: "1", Help: "of the order of trials and of all random choices"},
		{Name: "trial-timeout", Type: ParamDuration, Default: "5m", Low: "1s", Help: "a trial that takes longer is ended"},
		{Name: "primary", Type: ParamString, Help: "the metric that the gate judges; default: time_to_first_checkpoint_s, in batch mode makespan_s"},
		{Name: "include-invalid", Type: ParamBool, Default: "false", Help: "also run option sets that an option's own rule makes inert, as controls"},
	},
	TableCluster: {
		{Name: "target", Type: ParamString, Default: "embedded", Words: []string{"embedded", "process", "flink"}, Help: "what executes the job"},
		{Name: "workers", Type: ParamCount, Default: "2", Low: "1", High: "10000", Help: "worker processes, or what stands for them"},
		{Name: "slots-per-worker", Type: ParamCount, Default: "8", Low: "1", High: "100000", Help: "slots of each; the vertices of a job share them"},
		{Name: "network-memory", Type: ParamSize, Default: "64MiB", Low: "1B", Help: "memory for buffers of each worker"},
		{Name: "buffer-size", Type: ParamSize, Default: "32KiB", Low: "1KiB", High: "1GiB", Help: "size of a buffer"},
		{Name: "buffers-per-channel", Type: ParamCount, Default: "2", High: "1048576", Help: "exclusive buffers of a channel"},
		{Name: "floating-buffers-per-gate", Type: ParamCount, Default: "8", High: "1048576", Help: "buffers that the channels of a gate share"},
		{Name: "max-buffers-per-channel", Type: ParamCount, Low: "1", High: "1048576", Help: "most buffers of a subpartition; default 10, at least buffers-per-channel"},
		{Name: "overdraft-buffers-per-gate", Type: ParamCount, Default: "5", High: "1048576", Help: "buffers that a subtask may take beyond its own"},
		{Name: "state-backend", Type: ParamString, Default: "heap", Words: []string{"heap", "lsm"}, Help: "where keyed state is kept"},
		{Name: "storage", Type: ParamString, Default: "", Help: "URL of checkpoint storage: file://, s3://, mem://; empty: inside the trial's folder"},
	},
	TableWorkload: {
		{Name: "mode", Type: ParamString, Default: "streaming", Words: []string{"streaming", "batch"}, Help: "how the job runs"},
		{Name: "parallelism", Type: ParamCount, Default: "1", High: mostParallelism, Help: "of vertices that name none; in batch mode 0: decided at run time, from the bytes that there are to read"},
		{Name: "max-parallelism", Type: ParamCount, Default: "128", Low: "1", High: mostParallelism, Help: "key groups: the most that a rescale can reach"},
		{Name: "vertex", Type: ParamTables, Required: true, Help: "the operators of the job"},
		{Name: "edge", Type: ParamTables, Help: "what joins them"},
	},
	TableVertex: {
		{Name: "id", Type: ParamString, Required: true, Help: "name of the vertex, unique in the job"},
		{Name: "operator", Type: ParamString, Required: true, Help: "what it does: see benchrun list operators"},
		{Name: "parallelism", Type: ParamCount, High: mostParallelism, Help: "instead of the workload's"},
		{Name: "params", Type: ParamTable, Help: "parameters of the operator"},
	},
	TableEdge: {
		{Name: "from", Type: ParamString, Required: true, Help: "id of the vertex that sends"},
		{Name: "to", Type: ParamString, Required: true, Help: "id of the vertex that receives"},
		{Name: "partitioner", Type: ParamString, Words: partitioners, Help: "which subtask gets a record; default: forward between vertices of equal parallelism, else rebalance"},
	},
	TableScenario: {
		{Name: "step", Type: ParamTables, Help: "steps, in order: each does or waits"},
	},
	TableStep: {
		{Name: "name", Type: ParamString, Help: "of the step, in results; default step-N"},
		{Name: "repeat", Type: ParamCount, Default: "1", High: "1000", Help: "repeats the step and the waits after it, up to the next step with a name; 0: leaves them out"},
		{Name: "do", Type: ParamString, Help: "a fault or an action"},
		{Name: "wait", Type: ParamTable, Help: "conditions that must all hold"},
		{Name: "parallelism", Type: ParamTable, Help: "rescale: new parallelism by vertex"},
		{Name: "vertex", Type: ParamString, Help: "fail-task, drop-partition: of which vertex"},
		{Name: "subtask", Type: ParamIndex, Default: "random", Help: "fail-task, drop-partition: which subtask; random of drop-partition: one that has finished"},
		{Name: "worker", Type: ParamIndex, Default: "random", Help: "which worker, among those that run a task of the job"},
		{Name: "replace-after", Type: ParamDuration, Help: "kill-worker: after this time a new worker comes; default never"},
		{Name: "for", Type: ParamDuration, Low: "1ms", Help: "how long it lasts"},
		{Name: "kind", Type: ParamString, Default: "error", Words: []string{"error", "slow", "full", "torn"}, Help: "fail-storage: what happens to writes"},
		{Name: "down-for", Type: ParamDuration, Default: "1s", Help: "kill-jobmanager: until it comes back"},
		{Name: "file", Type: ParamString, Help: "upgrade: the workload file of the new job"},
		{Name: "upgrade-mode", Type: ParamString, Help: "upgrade: how state is carried over"},
		{Name: "when", Type: ParamTable, Help: "the moment of a fault; default: at once"},
	},
	TableCondition: {
		{Name: "running", Type: ParamBool, Default: "false", Help: "every task is RUNNING; in batch mode: a task is, after a fault one of the new execution"},
		{Name: "checkpoints", Type: ParamCount, Low: "1", High: "2147483647", Help: "so many checkpoints are complete since the last fault"},
		{Name: "records", Type: ParamCount, Low: "1", Help: "so many records arrived at sinks since the last fault"},
		{Name: "first-checkpoint", Type: ParamBool, Default: "false", Help: "a checkpoint newer than the restored one is complete"},
		{Name: "drained", Type: ParamBool, Default: "false", Help: "all restored in-flight data are processed"},
		{Name: "caught-up", Type: ParamBool, Default: "false", Help: "rated sources lag no more than before the fault"},
		{Name: "in-flight", Type: ParamSize, Low: "1B", Help: "what the newest complete checkpoint holds in flight"},
		{Name: "elapsed", Type: ParamDuration, Help: "time since the step began"},
		{Name: "progress", Type: ParamShare, Low: "0", High: "1", Help: "batch: share of the job's records that is consumed, the mean over the vertices; of a range, each block draws one"},
		{Name: "timeout", Type: ParamDuration, Default: "60s", Low: "1ms", Help: "when it passes, the trial ends"},
	},
	TableWhen: {
		{Name: "during-recovery", Type: ParamBool, Default: "false", Help: "a recovery is under way; in batch mode: a new master leads, or tasks run again, and none has finished since"},
		{Name: "restored", Type: ParamFloat, Low: "0", High: "1", Help: "share of the restored in-flight data that is processed"},
		{Name: "checkpoint", Type: ParamString, Words: []string{"in-progress"}, Help: "a checkpoint is under way"},
		{Name: "timeout", Type: ParamDuration, Default: "30s", Low: "1ms", Help: "when it passes, the trial ends"},
	},
}

// Keys lists the keys of a table of the format, in the order of the
// documentation.
func Keys(table string) []Key { return slices.Clone(tables[table]) }

// Tables lists the format's tables.
func Tables() []string {
	return []string{TableFile, TableRun, TableCluster, TableWorkload, TableVertex, TableEdge, TableScenario, TableStep, TableCondition, TableWhen}
}

func lookupKey(keys []Key, name string) (Key, bool) {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}

// The texts of a key's default and limits are the catalogue's own; its test
// holds them to their types.

func (k Key) count(text string, absent int64) int64 {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return absent
}

func (k Key) float(text string, absent float64) float64 {
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return f
	}
	return absent
}

func (k Key) bytes(text string, absent int64) int64 {
	if n, err := options.ParseSize(text); err == nil && text != "" {
		return n
	}
	return absent
}

func (k Key) length(text string, absent time.Duration) time.Duration {
	if d, err := options.ParseDuration(text); err == nil && text != "" {
		return d
	}
	return absent
}

// limits are the lowest and highest whole number.
func (k Key) limits() (low, high int64) {
	return k.count(k.Low, 0), k.count(k.High, math.MaxInt64)
}

// outside says what a value beyond the limits has to be.
func outside(low, high string) string {
	switch {
	case high == "":
		return "must be at least " + low
	case low == "":
		return "must be at most " + high
	}
	return fmt.Sprintf("must be between %s and %s", low, high)
}
