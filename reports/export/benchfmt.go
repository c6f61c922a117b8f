package export

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"benchrun/harness/result"
)

// Benchfmt writes the samples of all runs in the Go benchmark format. Each
// metric is a unit of its own, so benchstat makes a table of each; each axis is
// a part of the name, so benchstat can put it into columns (-col /R).
func Benchfmt(w io.Writer, runs []*result.Loaded) error {
	b := bufio.NewWriter(w)
	units(b, runs)
	for _, l := range runs {
		r := &l.Run
		fmt.Fprintln(b)
		config(b, "run", r.Run)
		config(b, "goos", r.Machine.OS)
		config(b, "goarch", r.Machine.Arch)
		config(b, "cpu", r.Machine.CPUModel)
		config(b, "kernel", r.Machine.Kernel)
		build := ""
		for i := range l.Trials {
			t := &l.Trials[i]
			if t.Warmup {
				continue
			}
			if t.Build != build {
				build = t.Build
				config(b, "build", t.Build)
				config(b, "revision", t.Revision)
			}
			if t.Outcome != result.OK {
				fmt.Fprintf(b, "# trial %s: %s block %d of %s: %s %q\n", t.Trial, t.Cell, t.Block, t.Workload, t.Outcome, t.Reason)
				continue
			}
			line(b, t, r.Machine.Cores)
		}
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("export as benchfmt: %w", err)
	}
	return nil
}

// units tells the direction of every metric that occurs.
func units(w io.Writer, runs []*result.Loaded) {
	var told []string
	for _, l := range runs {
		for i := range l.Trials {
			for _, v := range values(&l.Trials[i]) {
				m, known := result.LookupMetric(v.name)
				unit := Unit(v.name)
				if !known || m.Better == result.Neutral || slices.Contains(told, unit) {
					continue
				}
				told = append(told, unit)
				fmt.Fprintf(w, "Unit %s better=%s\n", unit, map[result.Better]string{result.Lower: "lower", result.Higher: "higher"}[m.Better])
			}
		}
	}
}

// Unit is a metric as a unit of the Go benchmark format: time_to_running-sec.
func Unit(metric string) string {
	m, _ := result.LookupMetric(metric)
	name := metric
	for _, suffix := range []string{"_records_per_s", "_records", "_bytes", "_s"} {
		if rest, ok := strings.CutSuffix(metric, suffix); ok {
			name = rest
			break
		}
	}
	switch m.Unit {
	case "s":
		return name + "-sec"
	case "B":
		return name + "-B"
	case "records", "records/s":
		return name + "-" + m.Unit
	}
	return metric
}

// config writes a line of configuration; an empty value would take the key
// away.
func config(w io.Writer, key, value string) {
	value = strings.Join(strings.Fields(value), " ")
	if value == "" {
		value = "unknown"
	}
	fmt.Fprintf(w, "%s: %s\n", key, value)
}

func line(w io.Writer, t *result.Trial, cores int) {
	values := values(t)
	if len(values) == 0 {
		return
	}
	fmt.Fprintf(w, "Benchmark%s", camel(t.Workload))
	for part := range strings.SplitSeq(t.Cell, ",") {
		fmt.Fprintf(w, "/%s", part)
	}
	// What follows a dash at the end of a name is taken for the number of CPUs.
	fmt.Fprintf(w, "-%d 1", max(cores, 1))
	for _, v := range values {
		fmt.Fprintf(w, " %s %s", Number(v.value), Unit(v.name))
	}
	fmt.Fprintln(w)
}

// camel turns a workload's name into the name of a benchmark: unaligned-rescale
// into UnalignedRescale.
func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "-") {
		for i, r := range part {
			if i == 0 {
				r = unicode.ToUpper(r)
			}
			b.WriteRune(r)
		}
	}
	return b.String()
}
