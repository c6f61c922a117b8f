package result

// Summary is the content of summary.json, all of it computed from run.json and
// trials.jsonl.
type Summary struct {
	Schema    int                        `json:"schema"`
	Run       string                     `json:"run"`
	Workloads map[string]WorkloadSummary `json:"workloads"`
}

// WorkloadSummary holds the figures of one workload. With two builds a cell is
// named cell@build.
type WorkloadSummary struct {
	Cells      map[string]CellSummary        `json:"cells"`
	Pairs      map[string]map[string]Pair    `json:"pairs,omitempty"`       // cell -> metric, against the reference cell
	BuildPairs map[string]map[string]Pair    `json:"build_pairs,omitempty"` // cell -> metric, against the base build
	Derived    map[string]map[string]float64 `json:"derived,omitempty"`     // cell -> metric that needs several trials
}

// CellSummary holds the figures of one cell.
type CellSummary struct {
	Metrics map[string]Stat `json:"metrics"`
}

// Stat describes the samples of one metric in one cell. Spread and interval
// are absent where the samples are too few to tell.
type Stat struct {
	N       int      `json:"n"`       // samples of trials that are ok
	Planned int      `json:"planned"` // trials planned, warm-ups not counted
	Failed  int      `json:"failed"`  // trials that ended otherwise
	Median  float64  `json:"median"`
	Mean    float64  `json:"mean"`
	SD      *float64 `json:"sd,omitempty"`
	Min     float64  `json:"min"`
	Max     float64  `json:"max"`
	P90     float64  `json:"p90"`
	CILow   *float64 `json:"ci_low,omitempty"`
	CIHigh  *float64 `json:"ci_high,omitempty"`
	Unit    string   `json:"unit"`
	Better  Better   `json:"better"`
}

// Pair is a paired comparison of one metric.
type Pair struct {
	N       int      `json:"n"`
	Ratio   *float64 `json:"ratio,omitempty"`
	CILow   *float64 `json:"ci_low,omitempty"`
	CIHigh  *float64 `json:"ci_high,omitempty"`
	Verdict string   `json:"verdict"`
}
