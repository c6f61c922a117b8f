package result

import "strings"

// Better is the direction in which a metric improves.
type Better string

// Directions.
const (
	Lower   Better = "lower"
	Higher  Better = "higher"
	Neutral Better = "none"
)

// Metric describes one metric.
type Metric struct {
	Name       string
	Unit       string // s, B, records, records/s, tasks, ratio
	Better     Better
	Resolution float64 // differences below it mean nothing
	PerFault   bool    // counted from a fault's t0; else over the whole trial
	Help       string
}

// Share tells whether the metric is a part of a whole, which people read in
// percent.
func (m Metric) Share() bool {
	switch m.Name {
	case "reexecuted_fraction", "avoidable_reexecuted_fraction", "recording_overhead":
		return true
	}
	return false
}

var metrics = []Metric{
	{"detect_s", "s", Lower, 1e-6, true, "from the fault to the moment at which the master knows of it; where the master died, to the first worker that has lost it, or where none had joined it to its supervisor that saw it end. Absent if nobody noticed before the next master led"},
	{"time_to_deploying_s", "s", Lower, 1e-6, true, "from the fault to the first task of the new execution being deployed"},
	{"time_to_initializing_s", "s", Lower, 1e-6, true, "from the fault to the last task being INITIALIZING, that is, about to restore its state"},
	{"time_to_running_s", "s", Lower, 1e-6, true, "from the fault to the last task being RUNNING. What RUNNING means depends on the recovery path: with neither R nor D it comes early and the first checkpoint late; with R alone when all restored data are processed; with D at once. Read it beside time_to_drained_s and time_to_first_checkpoint_s"},
	{"time_to_first_output_s", "s", Lower, 1e-6, true, "from the fault to the first record of the new execution at a sink"},
	{"time_to_first_checkpoint_trigger_s", "s", Lower, 1e-6, true, "from the fault to the trigger of the first checkpoint that completes after it"},
	{"time_to_first_checkpoint_s", "s", Lower, 1e-6, true, "from the fault to the first new checkpoint being durable and complete: from here on a second failure costs no progress. It counts only if every task of the new execution took its own snapshot"},
	{"time_to_drained_s", "s", Lower, 1e-6, true, "from the fault to the last record restored from in-flight data being processed; equal to time_to_running_s if nothing was in flight"},
	{"time_to_caught_up_s", "s", Lower, 1e-6, true, "from the fault to the start of 2 s in which the lag of the rated sources stayed within 1.1 times its maximum of the 5 s before the fault"},
	{"restored_inflight_bytes", "B", Neutral, 1, true, "record bytes of the restored checkpoint's in-flight data, each counted once"},
	{"restored_bytes", "B", Lower, 1, true, "all bytes of in-flight data read by the recovering tasks, replicas counted"},
	{"filtered_out_bytes", "B", Neutral, 1, true, "bytes read and thrown away because the records belong to another subtask"},
	{"spilled_bytes", "B", Lower, 1, true, "bytes written to disk because the restored data did not fit in memory"},
	{"first_checkpoint_inflight_bytes", "B", Lower, 1, true, "in-flight bytes held by the first checkpoint after the fault"},
	{"inflight_inflation", "ratio", Lower, 0.001, true, "in-flight bytes of the first checkpoint after the fault over those restored"},
	{"reprocessed_records", "records", Lower, 1, true, "records processed twice because they came after the restored checkpoint"},
	{"throughput_records_per_s", "records/s", Higher, 1, false, "records that left the sources per second, from the first checkpoint to the first fault, else to the finish"},
	{"control_recovery_s", "s", Lower, 1e-6, true, "batch: from the loss of the master to the first task RUNNING under the new one, newly deployed or adopted; one that had finished before is neither, and if none is left to run there is no such time. It is the sum of detect_s, recovery_elect_s, recovery_replay_s, recovery_wait_s and recovery_schedule_s; the first two are absent if nobody noticed the loss"},
	{"recovery_elect_s", "s", Lower, 1e-6, true, "batch: from the end of detect_s to the new master leading; the time until it is started is in it"},
	{"recovery_replay_s", "s", Lower, 1e-6, true, "batch: from the new master leading to the log of the job being replayed; absent if it began anew"},
	{"recovery_wait_s", "s", Lower, 1e-6, true, "batch: from the end of the replay to the end of the wait for the partitions that workers hold; absent if there was none"},
	{"recovery_schedule_s", "s", Lower, 1e-6, true, "batch: from there to the first task RUNNING"},
	{"time_to_parity_s", "s", Lower, 1e-6, true, "batch: from the fault to the moment at which as much useful work is done as at the fault: records of finished tasks whose output is still there. Where nothing is lost, the end of the outage: the first task that runs, or, if none was left to run, the new master having the job in hand"},
	{"reexecuted_fraction", "ratio", Lower, 0.001, true, "batch: task-seconds spent again on tasks that had finished before the fault, over the task-seconds that all tasks finished before it had taken. Above 1 where the tasks took longer the second time, on a busier or colder machine, or ran more than twice"},
	{"avoidable_reexecuted_fraction", "ratio", Lower, 0.001, true, "batch: the part of reexecuted_fraction that is of tasks whose output was still there, be it reported too late, or that nobody needed any more; relative to the same, all task-seconds finished before the fault, so it can be above 1, too"},
	{"durability_gap_tasks", "tasks", Lower, 1, true, "batch: tasks that had finished when the master died, had to be done again and need not have been, because the log did not tell the new master of them. Absent without job recovery, where there is no log"},
	{"makespan_s", "s", Lower, 1e-6, false, "batch: from submission to the end of the job"},
	{"wasted_bytes", "B", Lower, 1, false, "batch: shuffle bytes of finished attempts whose output no consumer has read that counts in the end; what attempts wrote that did not finish is not known"},
	{"leftover_bytes", "B", Lower, 1, false, "batch: bytes in the workers' folders after the end of the job, before anybody cleans up. Absent if a worker did not say what it had left; the log of the trial names it"},
	{"event_log_bytes", "B", Lower, 1, false, "batch: bytes written to the event log of the job"},
	{"recording_overhead", "ratio", Lower, 1e-6, false, "batch: time that masters spent in recording plus CPU of the log's writer, over makespan times cores; what job recovery costs, measured in the run itself"},
}

// derived metrics need several trials of a block.
var derived = []Metric{
	{"steady_overhead_ratio", "ratio", Lower, 0.001, false, "batch, of several trials: makespan with job recovery over makespan without it in the same block, where no fault was done"},
	{"recovery_efficiency", "ratio", Higher, 0.001, false, "batch, of several trials: what recovery saved of what it could save, (T_restart - T_fail) / (T_restart - T_ideal) in one block. T_restart: makespan of the same fault without job recovery; T_ideal: makespan without fault and without job recovery, plus the outage. 1: nothing was lost but the outage; 0: no better than a restart; above 1: tasks went on through the outage. Absent where a restart costs hardly more than the outage"},
}

// Metrics lists every metric of a trial, in the order of tables.
func Metrics() []Metric { return append([]Metric(nil), metrics...) }

// DerivedMetrics lists the metrics that take several trials of a block.
func DerivedMetrics() []Metric { return append([]Metric(nil), derived...) }

// LookupMetric finds a metric by its name; the name of a later fault's metric,
// step.metric, finds the metric.
func LookupMetric(name string) (Metric, bool) {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	for _, list := range [][]Metric{metrics, derived} {
		for _, m := range list {
			if m.Name == name {
				return m, true
			}
		}
	}
	return Metric{}, false
}
