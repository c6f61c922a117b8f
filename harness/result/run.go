package result

import (
	"maps"
	"time"
)

// Schema is the version of the files that this package writes.
const Schema = 1

// State is where a run stands.
type State string

// States of a run.
const (
	Running     State = "running"
	Complete    State = "complete"
	Interrupted State = "interrupted"
)

// Run is the content of run.json: all that is needed to repeat the run and to
// judge its trials.
type Run struct {
	Schema    int               `json:"schema"`
	Run       string            `json:"run"` // the folder's name
	State     State             `json:"state"`
	Tool      Tool              `json:"tool"`
	Builds    map[string]Build  `json:"builds"`
	BaseBuild string            `json:"base_build,omitempty"` // the first --build
	Command   []string          `json:"command"`
	Overrides []string          `json:"overrides"`           // of --set, KEY=VALUE, in order
	Reference string            `json:"reference,omitempty"` // cell that pairs are against; empty: the first
	Settings  Settings          `json:"settings"`
	Workloads []Workload        `json:"workloads"`
	Seed      uint64            `json:"seed"`
	Plan      Plan              `json:"plan"`
	Machine   Machine           `json:"machine"`
	Targets   map[string]string `json:"targets"` // name -> version
	Started   time.Time         `json:"started"`
	Ended     *time.Time        `json:"ended,omitempty"`
}

// Tool is the program that wrote the run.
type Tool struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Dirty    bool   `json:"dirty"`
	Go       string `json:"go"`
}

// Build is one executable that ran trials.
type Build struct {
	Path     string `json:"path"`
	SHA256   string `json:"sha256"`
	Revision string `json:"revision"`
	// DelaysUs are slow-downs planted in this build's trials, in microseconds,
	// by fault point of the engine: the gate's test of itself.
	DelaysUs map[string]int64 `json:"delays_us,omitempty"`
}

// SameBuild tells whether two builds are the same file and nothing was planted
// in one alone: then their difference is chance.
func SameBuild(a, b Build) bool {
	return a.SHA256 != "" && a.SHA256 == b.SHA256 && maps.Equal(a.DelaysUs, b.DelaysUs)
}

// Settings are the flags of the run that a resumed run takes over. Nil or
// empty means the workload file's value.
type Settings struct {
	Repeats *int    `json:"repeats,omitempty"`
	Warmup  *int    `json:"warmup,omitempty"`
	Seed    *uint64 `json:"seed,omitempty"`
	Only    string  `json:"only,omitempty"`
	Target  string  `json:"target,omitempty"`
	Quick   bool    `json:"quick,omitempty"`
	// FromScratch: a master that could not read the log of its batch job was to
	// wipe it and begin the job anew.
	FromScratch bool `json:"from_scratch,omitempty"`
}

// Workload is one file as it was when the run started.
type Workload struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Primary     string   `json:"primary"`       // metric that a gate judges
	File        string   `json:"file"`          // as it was given
	Dir         string   `json:"dir,omitempty"` // absolute; relative paths of the file start here
	SHA256      string   `json:"sha256"`
	Text        string   `json:"text"`
	Mode        string   `json:"mode,omitempty"` // batch, or empty for streaming
	// ScenarioAxes are the axes, by their names in flags, that change the scenario
	// and not the job: cells that differ in nothing else run the same job.
	ScenarioAxes []string `json:"scenario_axes,omitempty"`
	// Expected lists the metrics that every trial that is ok must have, or say in Absent
	// why not. Of the primary metric each cell must have a sample all the same.
	Expected []string `json:"expected,omitempty"`
	// Thresholds holds the absolute limits, by the cells they are for.
	Thresholds map[string][]string `json:"thresholds,omitempty"`
	// Inert lists groups of cells that the options' own rules make alike.
	Inert [][]string `json:"inert,omitempty"`
}

// Plan is what the run is to do.
type Plan struct {
	Cells  []Cell `json:"cells"`
	Trials int    `json:"trials"`
	Order  []Slot `json:"order"`
	// LeftOut lists the cells that the run's time had no room for.
	LeftOut []LeftOut `json:"left_out,omitempty"`
	// SecondLook says which of the trials were added to confirm an alarm.
	SecondLook *SecondLook `json:"second_look,omitempty"`
}

// LeftOut is a cell that is planned no more, with the reason.
type LeftOut struct {
	Workload string `json:"workload"`
	Cell     string `json:"cell"`
	Reason   string `json:"reason"`
}

// Cell is one combination of a workload's matrix.
type Cell struct {
	Workload string         `json:"workload"`
	Cell     string         `json:"cell"`
	Flags    map[string]any `json:"flags"`
}

// Slot is one planned trial.
type Slot struct {
	Workload string `json:"workload"`
	Cell     string `json:"cell"`
	Build    string `json:"build"`
	Block    int    `json:"block"`
	Warmup   bool   `json:"warmup"`
}

// Machine describes the host. What could not be read is absent.
type Machine struct {
	Hostname          string             `json:"hostname,omitempty"`
	OS                string             `json:"os,omitempty"`
	Arch              string             `json:"arch,omitempty"`
	CPUModel          string             `json:"cpu_model,omitempty"`
	Cores             int                `json:"cores,omitempty"`
	MemoryBytes       int64              `json:"memory_bytes,omitempty"`
	Kernel            string             `json:"kernel,omitempty"`
	CgroupCPUs        float64            `json:"cgroup_cpus,omitempty"`
	CgroupMemoryBytes int64              `json:"cgroup_memory_bytes,omitempty"`
	Governor          string             `json:"governor,omitempty"`
	Load1             *float64           `json:"load1,omitempty"` // at the run's start
	Probes            map[string]float64 `json:"probes,omitempty"`
}
