package export

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"benchrun/harness/result"
)

// header names the columns of CSV.
var header = []string{"run", "workload", "cell", "build", "revision", "block", "warmup", "order", "trial", "target", "outcome", "reason", "phase", "started", "wall_s", "recovery_path", "metric", "value", "unit", "better"}

// CSV writes the trials of all runs in long form.
func CSV(w io.Writer, runs []*result.Loaded) error {
	c := csv.NewWriter(w)
	c.UseCRLF = true
	c.Write(header)
	for _, l := range runs {
		for i := range l.Trials {
			t := &l.Trials[i]
			row := func(metric, value, unit, better string) {
				cells := []string{l.Run.Run, t.Workload, t.Cell, t.Build, t.Revision, strconv.Itoa(t.Block), strconv.FormatBool(t.Warmup), strconv.Itoa(t.Order), t.Trial, t.Target,
					string(t.Outcome), t.Reason, t.Phase, date(t.Started), Number(t.WallS), t.RecoveryPath, metric, value, unit, better}
				for i := range cells {
					cells[i] = safe(cells[i])
				}
				c.Write(cells)
			}
			values := values(t)
			for _, v := range values {
				m, _ := result.LookupMetric(v.name)
				row(v.name, Number(v.value), m.Unit, string(m.Better))
			}
			if len(values) == 0 {
				row("", "", "", "")
			}
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("export as csv: %w", err)
	}
	return nil
}

// safe keeps a spreadsheet from taking text of a workload file for a formula.
func safe(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

func date(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Number writes a value so that it reads back as the same value.
func Number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

type named struct {
	name  string
	value float64
}

// values lists the metrics of a trial in the order of tables: those of the
// first fault and the whole trial, then those of later faults as step.metric.
func values(t *result.Trial) []named {
	var out []named
	add := func(prefix string, metrics map[string]float64) {
		for _, m := range result.Metrics() {
			if v, ok := metrics[m.Name]; ok {
				out = append(out, named{prefix + m.Name, v})
			}
		}
		for _, name := range slices.Sorted(maps.Keys(metrics)) {
			if !slices.ContainsFunc(result.Metrics(), func(m result.Metric) bool { return m.Name == name }) {
				out = append(out, named{prefix + name, metrics[name]})
			}
		}
	}
	add("", t.Metrics)
	for i, f := range t.Faults {
		if i > 0 {
			add(f.Name+".", f.Metrics)
		}
	}
	return out
}
