package export

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"

	"golang.org/x/perf/benchfmt"
)

// sample is a run of two cells and two builds with everything that is odd.
func sample() *result.Loaded {
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	trial := func(id, cell, build string, block int, outcome result.Outcome, metrics map[string]float64) result.Trial {
		return result.Trial{Trial: id, Workload: "my-job", Cell: cell, Flags: map[string]any{"R": true}, Build: build, Revision: "r-" + build, Block: block, Warmup: block == 0, Order: block, Target: "embedded",
			Outcome: outcome, Started: when, WallS: 3.5, Metrics: metrics, Options: map[string]any{}}
	}
	l := &result.Loaded{Run: result.Run{Schema: 1, Run: "run-1", State: result.Complete, Builds: map[string]result.Build{"base": {}, "head": {}}, BaseBuild: "base",
		Workloads: []result.Workload{{Name: "my-job", Primary: "time_to_running_s"}}, Machine: result.Machine{OS: "linux", Arch: "amd64", CPUModel: "Fast CPU", Cores: 8}}}
	l.Run.Plan.Cells = []result.Cell{{Workload: "my-job", Cell: "R=false,size=2-4"}, {Workload: "my-job", Cell: "R=true,size=2-4"}}
	values := map[string]float64{"time_to_running_s": 0.3, "throughput_records_per_s": 1000, "restored_inflight_bytes": 1 << 26, "reprocessed_records": 3, "inflight_inflation": 1.5}
	two := trial("3", "R=true,size=2-4", "head", 1, result.OK, values)
	two.Faults = []result.Fault{{Name: "rescale", Metrics: map[string]float64{"time_to_running_s": 0.3}}, {Name: "again", Metrics: map[string]float64{"time_to_running_s": 0.75}}}
	bad := trial("4", "R=true,size=2-4", "base", 1, result.Timeout, nil)
	bad.Reason, bad.Phase = "=HYPERLINK(\"http://x\",\"a, b\")\nno checkpoint", "fill"
	l.Trials = []result.Trial{
		trial("1", "R=false,size=2-4", "base", 0, result.OK, map[string]float64{"time_to_running_s": 9}),
		trial("2", "R=false,size=2-4", "base", 1, result.OK, map[string]float64{"time_to_running_s": 0.5, "spilled_bytes": 0}),
		two, bad,
	}
	l.Lines = l.Trials
	for _, t := range l.Trials {
		l.Run.Plan.Order = append(l.Run.Plan.Order, t.Key())
	}
	return l
}

// TestJSON: one document with the raw values, and nothing that is no JSON.
func TestJSON(t *testing.T) {
	var b bytes.Buffer
	if err := JSON(&b, []*result.Loaded{sample(), sample()}, nil); err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(b.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Runs) != 2 || len(d.Runs[0].Trials) != 4 || d.Runs[0].Trials[2].Metrics["time_to_running_s"] != 0.3 || d.Runs[0].Trials[3].Metrics != nil {
		t.Errorf("%+v", d)
	}
	if s := d.Runs[0].Summary.Workloads["my-job"].Cells["R=true,size=2-4@head"].Metrics["time_to_running_s"]; s.N != 1 || s.Median != 0.3 {
		t.Errorf("%+v", s)
	}
	for _, list := range []string{"trials", "missing", "unusable", "warnings"} {
		if strings.Contains(b.String(), `"`+list+`": null`) {
			t.Errorf("an empty list of %s is null", list)
		}
	}
	broken := sample()
	broken.Trials[2].Metrics["time_to_running_s"] = math.NaN()
	if err := JSON(&b, []*result.Loaded{broken}, nil); err == nil {
		t.Error("NaN was written")
	}
}

// TestCSV: long form that reads back, with failed trials as lines without a
// value, and no cell that a spreadsheet would carry out.
//
// Fails if a failed trial has no line, or safe leaves a cell as it is.
func TestCSV(t *testing.T) {
	var b bytes.Buffer
	if err := CSV(&b, []*result.Loaded{sample()}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Count(text, "\r\n") < 9 || strings.Contains(strings.ReplaceAll(text, "\r\n", ""), "\r") {
		t.Errorf("ends of lines: %q", text)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1+1+2+6+1 {
		t.Errorf("%d rows", len(rows))
	}
	column := func(row []string, name string) string { return row[slices.Index(rows[0], name)] }
	var metrics []string
	for _, row := range rows[1:] {
		for _, cell := range row {
			if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
				t.Errorf("a formula: %q", cell)
			}
		}
		if column(row, "trial") == "3" {
			metrics = append(metrics, column(row, "metric"))
		}
	}
	if want := "time_to_running_s restored_inflight_bytes inflight_inflation reprocessed_records throughput_records_per_s again.time_to_running_s"; strings.Join(metrics, " ") != want {
		t.Errorf("%q, want %q", metrics, want)
	}
	if v, err := strconv.ParseFloat(column(rows[4], "value"), 64); err != nil || v != 0.3 || column(rows[4], "unit") != "s" || column(rows[4], "better") != "lower" {
		t.Errorf("%q", rows[4])
	}
	last := rows[len(rows)-1]
	if column(last, "outcome") != "timeout" || column(last, "metric") != "" || column(last, "value") != "" || !strings.HasPrefix(column(last, "reason"), "'=HYPERLINK") || column(last, "phase") != "fill" {
		t.Errorf("%q", last)
	}
}

// TestBenchfmt: the reader of benchstat reads it: values, units with their
// direction, axes as parts of the name, builds as configuration.
//
// Fails if a warm-up or a failed trial has a line, or if a cell stays one part.
func TestBenchfmt(t *testing.T) {
	var b bytes.Buffer
	if err := Benchfmt(&b, []*result.Loaded{sample()}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	r := benchfmt.NewReader(&b, "export")
	var got []string
	for r.Scan() {
		x, ok := r.Result().(*benchfmt.Result)
		if !ok {
			if err, ok := r.Result().(*benchfmt.SyntaxError); ok {
				t.Error(err)
			}
			continue
		}
		base, parts := x.Name.Parts()
		name := string(base)
		for _, p := range parts {
			name += " " + string(p)
		}
		got = append(got, x.GetConfig("build")+" "+name)
		for _, v := range x.Values {
			got = append(got, Number(v.Value)+" "+v.Unit)
		}
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
	want := []string{
		"base MyJob /R=false /size=2-4 -8", "0.5 time_to_running-sec", "0 spilled-B",
		"head MyJob /R=true /size=2-4 -8", "0.3 time_to_running-sec", "6.7108864e+07 restored_inflight-B", "1.5 inflight_inflation", "3 reprocessed-records", "1000 throughput-records/s", "0.75 again.time_to_running-sec",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q\nin %s", got, want, text)
	}
	units := r.Units()
	for unit, better := range map[string]int{"time_to_running-sec": -1, "throughput-records/s": 1, "again.time_to_running-sec": -1, "restored_inflight-B": 0} {
		if got := units.GetBetter(unit); got != better {
			t.Errorf("%s: better is %d, want %d", unit, got, better)
		}
	}
	if !strings.Contains(text, `# trial 4: R=true,size=2-4 block 1 of my-job: timeout "=HYPERLINK`) {
		t.Errorf("the failed trial is not told:\n%s", text)
	}
}

// TestB41UnitsOfFormatters: a value comes out with the unit that it has.
//
// Fails if Unit writes seconds as ns, or a rate loses its time.
func TestB41UnitsOfFormatters(t *testing.T) {
	for _, m := range result.Metrics() {
		want := map[string]string{"s": "-sec", "B": "-B", "records": "-records", "records/s": "-records/s", "ratio": ""}[m.Unit]
		if got := Unit(m.Name); !strings.HasSuffix(got, want) || strings.Contains(got, " ") {
			t.Errorf("%s in %s is %s", m.Name, m.Unit, got)
		}
	}
	for _, v := range []float64{0, 0.1, 1e-9, 123456789.25, 1e21} {
		if back, err := strconv.ParseFloat(Number(v), 64); err != nil || back != v {
			t.Errorf("%v is written as %s", v, Number(v))
		}
	}
}

// TestSameBytes: the same samples give the same bytes.
func TestSameBytes(t *testing.T) {
	for name, f := range map[string]func(b *bytes.Buffer) error{
		"json":     func(b *bytes.Buffer) error { return JSON(b, []*result.Loaded{sample()}, nil) },
		"csv":      func(b *bytes.Buffer) error { return CSV(b, []*result.Loaded{sample()}) },
		"benchfmt": func(b *bytes.Buffer) error { return Benchfmt(b, []*result.Loaded{sample()}) },
	} {
		var first, second bytes.Buffer
		if err := f(&first); err != nil {
			t.Fatal(err)
		}
		if err := f(&second); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s differs", name)
		}
	}
}
