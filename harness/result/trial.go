package result

import "time"

// Outcome is how a trial ended.
type Outcome string

// Outcomes of trials. Only OK carries metrics.
const (
	OK                 Outcome = "ok"
	Timeout            Outcome = "timeout"
	Failed             Outcome = "failed"
	Incorrect          Outcome = "incorrect"
	Misconfigured      Outcome = "misconfigured"
	Unsupported        Outcome = "unsupported"
	TrialInterrupted   Outcome = "interrupted"
	StartFault                 = "start"           // name of the entry in Faults for a start from a checkpoint
	KillMaster                 = "kill-jobmanager" // kind of the fault that takes the master away
	RecoveryUpstream           = "upstream"
	RecoveryDownstream         = "downstream"
	RecoveryDuring             = "during"
	RecoveryNone               = "none"
	RecoveryFull               = "full"      // batch: the new master began anew
	RecoveryEventLog           = "event-log" // batch: it went on from the log of the job
)

// Trial is one line of trials.jsonl.
type Trial struct {
	Trial    string         `json:"trial"` // unique in the run
	Workload string         `json:"workload"`
	Cell     string         `json:"cell"`
	Flags    map[string]any `json:"flags"`
	Build    string         `json:"build"`
	Revision string         `json:"revision"` // as the process that ran it says
	Block    int            `json:"block"`
	Warmup   bool           `json:"warmup"`
	Order    int            `json:"order"` // from 1 over the run
	Target   string         `json:"target"`
	Outcome  Outcome        `json:"outcome"`
	Reason   string         `json:"reason,omitempty"`
	Phase    string         `json:"phase,omitempty"` // the step where it ended, if not ok
	Started  time.Time      `json:"started"`
	WallS    float64        `json:"wall_s"`
	// Metrics of the first fault and of the whole trial, by name.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Absent says of metrics that one could look for why there is no number: there was
	// nothing to measure, or nobody knows. Those of later faults are called <step>.<metric>.
	Absent       map[string]string `json:"absent,omitempty"`
	Notes        []string          `json:"notes,omitempty"` // what else to know of a trial that is ok
	Faults       []Fault           `json:"faults,omitempty"`
	Correctness  *Correctness      `json:"correctness,omitempty"` // nil: unproved
	Options      map[string]any    `json:"options"`               // as read back from the running tasks
	RecoveryPath string            `json:"recovery_path,omitempty"`
	Resources    *Resources        `json:"resources,omitempty"`
	HostBefore   *HostProbe        `json:"host_before,omitempty"`
	HostAfter    *HostProbe        `json:"host_after,omitempty"`
}

// Key names the planned slot that a trial fills.
func (t *Trial) Key() Slot {
	return Slot{Workload: t.Workload, Cell: t.Cell, Build: t.Build, Block: t.Block, Warmup: t.Warmup}
}

// Fault is one disturbance of a trial with what followed it, up to the next.
type Fault struct {
	Name         string             `json:"name"` // of the step
	Kind         string             `json:"kind"`
	T0Us         int64              `json:"t0_us"` // on the timeline
	Metrics      map[string]float64 `json:"metrics,omitempty"`
	RecoveryPath string             `json:"recovery_path,omitempty"`
}

// Correctness is the proof of a trial's output.
type Correctness struct {
	Expected       int64  `json:"expected"`
	Received       int64  `json:"received"`
	Lost           int64  `json:"lost"`
	Duplicated     int64  `json:"duplicated"`
	OutOfOrder     int64  `json:"out_of_order"` // informative: shuffle and rescale reorder legally
	Digest         string `json:"digest"`
	ExpectedDigest string `json:"expected_digest"`
}

// Right tells whether nothing was lost, duplicated or changed.
func (c *Correctness) Right() bool {
	return c.Lost == 0 && c.Duplicated == 0 && c.Received == c.Expected && c.Digest == c.ExpectedDigest
}

// Resources is what a trial used, its own process only where not said
// otherwise. What could not be read is absent.
type Resources struct {
	CPUS         *float64 `json:"cpu_s,omitempty"`
	MaxRSSBytes  *int64   `json:"max_rss_bytes,omitempty"`
	ReadBytes    *int64   `json:"read_bytes,omitempty"`
	WrittenBytes *int64   `json:"written_bytes,omitempty"`
	NetBytes     *int64   `json:"net_bytes,omitempty"` // counted at the sockets between workers
}
