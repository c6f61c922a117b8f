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
	"reprocessed_records", "throughput_records_per_s", "makespan_s",
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
