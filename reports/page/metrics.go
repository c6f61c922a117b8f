package page

import (
	"strings"

	"benchrun/harness/result"
)

// the three metrics that are shown together wherever one of them is.
var together = []string{"time_to_running_s", "time_to_first_checkpoint_s", "time_to_drained_s"}

var shortNames = map[string]string{
	"detect_s":                           "detected",
	"time_to_deploying_s":                "deploying",
	"time_to_initializing_s":             "initializing",
	"time_to_running_s":                  "running",
	"time_to_first_output_s":             "first output",
	"time_to_first_checkpoint_trigger_s": "first checkpoint triggered",
	"time_to_first_checkpoint_s":         "first checkpoint",
	"time_to_drained_s":                  "drained",
	"time_to_caught_up_s":                "caught up",
	"restored_inflight_bytes":            "restored in flight",
	"restored_bytes":                     "read at restore",
	"filtered_out_bytes":                 "filtered out",
	"spilled_bytes":                      "spilled",
	"first_checkpoint_inflight_bytes":    "in flight at first checkpoint",
	"inflight_inflation":                 "inflation",
	"reprocessed_records":                "reprocessed",
	"throughput_records_per_s":           "throughput",
	"makespan_s":                         "makespan",
	"control_recovery_s":                 "control recovery",
	"recovery_elect_s":                   "new master elected",
	"recovery_replay_s":                  "log replayed",
	"recovery_wait_s":                    "partitions gathered",
	"recovery_schedule_s":                "first task scheduled",
	"time_to_parity_s":                   "parity",
	"reexecuted_fraction":                "done again",
	"avoidable_reexecuted_fraction":      "avoidably done again",
	"durability_gap_tasks":               "durability gap",
	"wasted_bytes":                       "wasted",
	"leftover_bytes":                     "left over",
	"event_log_bytes":                    "event log",
	"recording_overhead":                 "recording overhead",
	"steady_overhead_ratio":              "steady overhead",
	"recovery_efficiency":                "recovery efficiency",
}

// InWords is what pages call a metric.
func InWords(metric string) string { return short(metric) }

// short is the name of a metric in words.
func short(metric string) string {
	step := ""
	if i := strings.LastIndexByte(metric, '.'); i >= 0 {
		step, metric = metric[:i], metric[i+1:]
	}
	name, ok := shortNames[metric]
	if !ok {
		name = metric
	}
	if step != "" {
		return step + ": " + name
	}
	return name
}

// metricOf finds a metric, or stands in for an unknown one.
func metricOf(name string) result.Metric {
	m, ok := result.LookupMetric(name)
	if !ok {
		m = result.Metric{Name: name, Unit: "1", Better: result.Neutral, Help: "not known to this version"}
	}
	return m
}

// asShare turns a ratio that is a part of a whole into percent; unit stands behind
// the numbers.
func asShare(metric string, s result.Stat) (percent result.Stat, unit string) {
	if !metricOf(metric).Share() {
		return s, ""
	}
	times := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		x := 100 * *v
		return &x
	}
	s.Unit, s.Median, s.Min, s.Max, s.CILow, s.CIHigh = "%", 100*s.Median, 100*s.Min, 100*s.Max, times(s.CILow), times(s.CIHigh)
	return s, " %"
}
