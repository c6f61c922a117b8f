package spec

import (
	"regexp"
	"slices"
	"strings"

	"benchrun/runtime/options"
)

// metricNames are the metrics that a file may name as its primary metric or in
// a threshold. The lab's list of metrics is held to this one by a test.
var metricNames = []string{
	"detect_s", "time_to_deploying_s", "time_to_initializing_s", "time_to_running_s", "time_to_first_output_s",
	"time_to_first_checkpoint_trigger_s", "time_to_first_checkpoint_s", "time_to_drained_s", "time_to_caught_up_s",
	"restored_inflight_bytes", "restored_bytes", "filtered_out_bytes", "spilled_bytes", "first_checkpoint_inflight_bytes", "inflight_inflation",
	"reprocessed_records", "throughput_records_per_s",
	"control_recovery_s", "recovery_elect_s", "recovery_replay_s", "recovery_wait_s", "recovery_schedule_s",
	"time_to_parity_s", "reexecuted_fraction", "avoidable_reexecuted_fraction", "durability_gap_tasks",
	"makespan_s", "wasted_bytes", "leftover_bytes", "event_log_bytes", "recording_overhead",
}

// Metrics lists the metrics that a file may name.
func Metrics() []string { return slices.Clone(metricNames) }

// knownMetric accepts a metric, or that of a later fault: step.metric.
func knownMetric(name string) bool {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		name = name[i+1:]
	}
	return slices.Contains(metricNames, name)
}

// thresholdPattern is "statistic(metric) relation number unit".
var thresholdPattern = regexp.MustCompile(`^(?:median|mean|min|max|p[0-9]{1,2})\s*\(\s*([A-Za-z0-9_.#-]+)\s*\)\s*(?:<=|>=|<|>)\s*[0-9.]+(?:e[+-]?[0-9]+)?\s*[A-Za-z/]*$`)

// LimitPattern is the regular expression of an absolute limit in [thresholds].
func LimitPattern() string { return thresholdPattern.String() }

// Expected lists the metrics that every good trial must have: the primary one
// if the file names it, and what the waits after the first fault wait for. A
// trial without them would be silent where it should speak.
func (w *Workload) Expected() []string {
	var out []string
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	if w.Run.PrimaryGiven {
		add(w.Run.Primary)
	}
	if w.Mode == Batch {
		add("makespan_s")
		if w.masterDies() {
			add("control_recovery_s")
		}
		return out
	}
	inFirst := options.RecoveryPath.Get(w.Options) != "" // a start from a checkpoint is the first fault
	for _, s := range w.Steps {
		if s.Do != nil && s.Do.IsFault() {
			if inFirst || !slices.Contains([]string{"rescale", "fail-task", "kill-worker"}, s.Do.Kind) {
				break
			}
			inFirst = true
		}
		if s.Wait == nil || !inFirst {
			continue
		}
		if s.Wait.Running {
			add("time_to_running_s")
		}
		if s.Wait.FirstCheckpoint {
			add("time_to_first_checkpoint_s")
		}
		if s.Wait.Drained {
			add("time_to_drained_s")
		}
		if s.Wait.CaughtUp {
			add("time_to_caught_up_s")
		}
	}
	return out
}

// masterDies tells whether the first fault kills the master and the scenario
// then waits for a task of the next one.
func (w *Workload) masterDies() bool {
	killed := false
	for _, s := range w.Steps {
		switch {
		case s.Do != nil && s.Do.IsFault():
			if killed || s.Do.Kind != "kill-jobmanager" {
				return false
			}
			killed = true
		case s.Wait != nil && s.Wait.Running && killed:
			return true
		}
	}
	return false
}
