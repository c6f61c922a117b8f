package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"html/template"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"benchrun/harness/result"
	"benchrun/reports/chart"
	"benchrun/reports/verdict"
)

// provenance says where the numbers come from.
func (v *view) provenance(l *result.Loaded) {
	r := &l.Run
	add := func(name, value string, code bool) {
		if value != "" {
			v.Provenance = append(v.Provenance, fact{name, value, code})
		}
	}
	add("run", r.Run, true)
	add("command", command(r.Command), true)
	if len(r.Overrides) > 0 {
		add("overrides", strings.Join(r.Overrides, "\n"), true)
	}
	add("seed", strconv.FormatUint(r.Seed, 10), false)
	span := r.Started.UTC().Format("2006-01-02 15:04:05") + " UTC"
	if r.Ended != nil {
		span += " to " + r.Ended.UTC().Format("15:04:05") + " UTC (" + duration(r.Ended.Sub(r.Started)) + ")"
	}
	add("time", span, false)
	tool := "benchrun " + r.Tool.Version
	if r.Tool.Revision != "" {
		tool += ", revision " + r.Tool.Revision
	}
	if r.Tool.Dirty {
		tool += " with changes that are not committed"
	}
	if r.Tool.Go != "" {
		tool += ", " + r.Tool.Go
	}
	add("tool", tool, false)
	for _, name := range verdict.Builds(r) {
		b := r.Builds[name]
		if b.SHA256 == "" {
			continue
		}
		text := "sha256 " + b.SHA256
		if b.Revision != "" && b.Revision != r.Tool.Revision {
			text += ", revision " + b.Revision
		}
		if len(r.Builds) > 1 || r.BaseBuild != "" {
			text += ", " + b.Path
		}
		if name == r.BaseBuild && len(r.Builds) > 1 {
			text += " (the base)"
		}
		add("build "+name, text, false)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Targets)) {
		add("target "+name, r.Targets[name], false)
	}
	machine(add, &r.Machine)
	for _, w := range r.Workloads {
		v.Texts = append(v.Texts, sourceText{w.Name, w.File, w.SHA256, w.Text})
	}
	v.options(verdict.Columns(l))

	sub := []string{count(len(l.Trials)-len(interrupted(l)), "trial", "trials") + " of " + strconv.Itoa(r.Plan.Trials), r.Started.UTC().Format("2 January 2006, 15:04 UTC")}
	if r.Machine.CPUModel != "" {
		sub = append(sub, r.Machine.CPUModel)
	}
	if r.Machine.Cores > 0 {
		sub = append(sub, count(r.Machine.Cores, "core", "cores"))
	}
	v.Subtitle = append(sub, "benchrun "+r.Tool.Version)
}

func interrupted(l *result.Loaded) (out []string) {
	for _, t := range l.Trials {
		if t.Outcome == result.TrialInterrupted {
			out = append(out, t.Trial)
		}
	}
	return out
}

func machine(add func(name, value string, code bool), m *result.Machine) {
	cpu := m.CPUModel
	if m.Cores > 0 {
		cpu = strings.TrimPrefix(cpu+", "+count(m.Cores, "core", "cores"), ", ")
	}
	if m.CgroupCPUs > 0 {
		cpu += fmt.Sprintf(", limited to %g by the control group", m.CgroupCPUs)
	}
	if m.Governor != "" {
		cpu += ", governor " + m.Governor
	}
	add("CPU", cpu, false)
	memory := ""
	if m.MemoryBytes > 0 {
		memory = chart.Quantity(float64(m.MemoryBytes), "B")
	}
	if m.CgroupMemoryBytes > 0 {
		memory = strings.TrimPrefix(memory+", limited to "+chart.Quantity(float64(m.CgroupMemoryBytes), "B")+" by the control group", ", ")
	}
	add("memory", memory, false)
	add("host", strings.TrimSpace(m.Hostname+" "+strings.Trim(m.OS+"/"+m.Arch, "/")+" "+m.Kernel), false)
	if m.Load1 != nil {
		add("load", fmt.Sprintf("%.2f at the start", *m.Load1), false)
	}
	var probes []string
	for _, name := range slices.Sorted(maps.Keys(m.Probes)) {
		probes = append(probes, name+" "+strconv.FormatFloat(m.Probes[name], 'g', 3, 64))
	}
	add("noise probes", strings.Join(probes, ", "), false)
}

func duration(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
}

// download is a file that the page carries.
type download struct {
	Name, What string
	URL        template.URL
	Size       string
}

// gzipFrom is the size from which an embedded file is compressed.
const gzipFrom = 8 << 10

// embedded is a file within the page.
func embedded(name, what, mime string, b []byte) (download, error) {
	d := download{Name: name, What: what, Size: chart.Quantity(float64(len(b)), "B")}
	if len(b) >= gzipFrom {
		var z bytes.Buffer
		w, err := gzip.NewWriterLevel(&z, gzip.BestCompression)
		if err != nil {
			return d, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := w.Write(b); err != nil {
			return d, fmt.Errorf("%s: %w", name, err)
		}
		if err := w.Close(); err != nil {
			return d, fmt.Errorf("%s: %w", name, err)
		}
		b, mime, d.Name = z.Bytes(), "application/gzip", name+".gz"
	}
	d.URL = template.URL("data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(b))
	return d, nil
}

// downloads embeds the raw samples, so that a page that was sent by mail still
// holds what its numbers come from.
func downloads(l *result.Loaded, s *result.Summary, columns []verdict.Column) ([]download, error) {
	var out []download
	add := func(name, what, mime string, b []byte) error {
		d, err := embedded(name, what, mime, b)
		out = append(out, d)
		return err
	}
	for _, f := range []struct{ name, what, mime string }{
		{"trials.jsonl", "one line a trial: outcome, metrics, faults, proof, options", "application/x-ndjson"},
		{"run.json", "plan, machine, versions, workload files", "application/json"},
	} {
		b, err := os.ReadFile(filepath.Join(l.Dir, f.name))
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if err := add(f.name, f.what, f.mime, b); err != nil {
			return nil, err
		}
	}
	b, err := samplesCSV(columns)
	if err != nil {
		return nil, err
	}
	if err := add("samples.csv", "one line a trial and metric", "text/csv", b); err != nil {
		return nil, err
	}
	if b, err = indented(s); err != nil {
		return nil, fmt.Errorf("summary.json: %w", err)
	}
	return out, add("summary.json", "medians, intervals, pairs", "application/json", b)
}

// samplesCSV lists every sample. Text that a spreadsheet would take for a
// formula gets an apostrophe in front.
func samplesCSV(columns []verdict.Column) ([]byte, error) {
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	write := func(fields ...string) {
		for i, f := range fields {
			if f != "" && strings.ContainsRune("=+-@\t\r", rune(f[0])) {
				if _, err := strconv.ParseFloat(f, 64); err != nil {
					fields[i] = "'" + f
				}
			}
		}
		w.Write(fields) // its error stays with the writer
	}
	write("workload", "cell", "build", "block", "trial", "outcome", "metric", "value", "unit")
	metrics := verdict.Metrics(columns)
	for _, c := range columns {
		for i := range c.Trials {
			t := &c.Trials[i]
			if t.Outcome != result.OK {
				write(c.Workload, c.Cell, c.Build, strconv.Itoa(t.Block), t.Trial, string(t.Outcome), "", "", "")
				continue
			}
			for _, m := range metrics {
				if v, ok := t.Value(m); ok {
					write(c.Workload, c.Cell, c.Build, strconv.Itoa(t.Block), t.Trial, string(t.Outcome), m, strconv.FormatFloat(v, 'g', -1, 64), metricOf(m).Unit)
				}
			}
		}
	}
	w.Flush()
	return b.Bytes(), w.Error()
}
