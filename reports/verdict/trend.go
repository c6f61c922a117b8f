package verdict

import "time"

// Trend is how the ratio to a pinned reference build went from night to night:
// the document of `benchrun trend --json`.
type Trend struct {
	Schema   int      `json:"schema"`
	Nights   []Night  `json:"nights"` // by date
	Series   []Series `json:"series"`
	Warnings []string `json:"warnings,omitempty"`
}

// Night is one run.
type Night struct {
	Run       string    `json:"run"`
	Date      time.Time `json:"date"`
	Revision  string    `json:"revision"`  // of the head
	Reference string    `json:"reference"` // revision of the pinned build; empty: none, raw medians
	Machine   string    `json:"machine"`
	Note      string    `json:"note,omitempty"` // what changed beside the revision: machine, kernel, workload
}

// Series is one metric of one cell through the nights.
type Series struct {
	Workload string   `json:"workload"`
	Cell     string   `json:"cell"`
	Metric   string   `json:"metric"`
	Unit     string   `json:"unit"` // "ratio" against the reference build, else the metric's
	Better   string   `json:"better"`
	Points   []Point  `json:"points"`
	Changes  []Change `json:"changes"`
}

// Point is one night of a series.
type Point struct {
	Night int `json:"night"` // index
	// Cut tells why the values from here on are not of what was measured before;
	// empty: they are. A change is one between points without a cut.
	Cut   string   `json:"cut,omitempty"`
	Value float64  `json:"value"`
	Low   *float64 `json:"low,omitempty"`
	High  *float64 `json:"high,omitempty"`
	N     int      `json:"n"`
}

// Change is a point in time at which a series moved and stayed.
type Change struct {
	Night   int       `json:"night"` // index of the first night at the new level
	Date    time.Time `json:"date"`
	Before  float64   `json:"before"` // level
	After   float64   `json:"after"`
	Size    float64   `json:"size"`             // After/Before - 1
	P       float64   `json:"p"`                // of the permutation test
	Verdict Verdict   `json:"verdict"`          // faster or slower
	From    string    `json:"revision_before"`  // last revision at the old level
	To      string    `json:"revision_changed"` // first one at the new level
}
