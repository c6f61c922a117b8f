package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	ok, err := table(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// benchmark is one line of results.
type benchmark struct {
	name    string
	metrics []metric
}

// metric is one figure of a benchmark.
type metric struct {
	unit string
	val  float64
}

// Metrics that other aims need.
const (
	writing = "+writing"
	written = "MB-first"    // bytes that have to be durable
	synced  = "MB/s-synced" // what the disk takes
)

// table copies what is no result through, then prints all figures. It tells
// whether everything ran.
func table(in io.Reader, out io.Writer) (bool, error) {
	ok := true
	var all []benchmark
	var disk float64
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		b, is := parse(line)
		if !is {
			if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL") {
				ok = false
			}
			if line != "PASS" && !strings.Contains(line, "[no test files]") && !strings.HasPrefix(line, "Benchmark") {
				fmt.Fprintln(out, line)
			}
			continue
		}
		fmt.Fprintln(out, "  measured", b.name)
		all = append(all, b)
		if v, ok := b.figure(synced); ok {
			disk = v
		}
	}
	if err := s.Err(); err != nil {
		return false, err
	}
	fmt.Fprintln(out)
	var aimless []string
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "benchmark\tfigure\tmeasured\ttarget\t")
	reached, aims := 0, 0
	for _, b := range all {
		if !b.aims() {
			aimless = append(aimless, b.name)
			continue
		}
		for _, m := range b.metrics {
			if m.unit == "ns/op" || strings.Contains(m.unit, "-target") {
				continue
			}
			aim, note, has := b.target(m.unit, disk)
			if !has {
				fmt.Fprintf(w, "%s\t%s\t%s\t\t\n", b.name, m.unit, number(m.val))
				continue
			}
			aims++
			sign, good := "<=", m.val <= aim
			if rate(m.unit) {
				sign, good = ">=", m.val >= aim
			}
			verdict := "missed"
			if good {
				verdict = "ok"
				reached++
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s %s%s\t%s\n", b.name, m.unit, number(m.val), sign, number(aim), note, verdict)
		}
	}
	if err := w.Flush(); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\n%d of %d targets reached\n", reached, aims)
	if len(aimless) > 0 {
		fmt.Fprintf(out, "without a target, to be measured by themselves with go test -bench: %s\n", strings.Join(aimless, ", "))
	}
	return ok && len(all) > 0, nil
}

// parse reads "BenchmarkName-2  1  12 ns/op  3 B/op".
func parse(line string) (b benchmark, ok bool) {
	f := strings.Fields(line)
	if len(f) < 4 || len(f)%2 != 0 || !strings.HasPrefix(f[0], "Benchmark") {
		return b, false
	}
	if _, err := strconv.Atoi(f[1]); err != nil {
		return b, false
	}
	for i := 2; i < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return b, false
		}
		b.metrics = append(b.metrics, metric{f[i+1], v})
	}
	b.name = strings.TrimPrefix(f[0], "Benchmark")
	if i := strings.LastIndexByte(b.name, '-'); i > 0 { // the number of processors
		if _, err := strconv.Atoi(b.name[i+1:]); err == nil {
			b.name = b.name[:i]
		}
	}
	return b, true
}

func (b *benchmark) figure(unit string) (float64, bool) {
	for _, m := range b.metrics {
		if m.unit == unit {
			return m.val, true
		}
	}
	return 0, false
}

// aims tells whether the benchmark has a target, or is what one is made of.
func (b *benchmark) aims() bool {
	for _, m := range b.metrics {
		if strings.Contains(m.unit, "-target") || m.unit == synced {
			return true
		}
	}
	return false
}

// target finds what a figure aims at on a disk that takes so many MB/s; note is
// what the name adds that could not be worked out.
func (b *benchmark) target(unit string, disk float64) (aim float64, note string, ok bool) {
	for _, m := range b.metrics {
		rest, found := strings.CutPrefix(m.unit, unit+"-target")
		if !found {
			continue
		}
		if bytes, has := b.figure(written); rest == writing && has && disk > 0 {
			return m.val + bytes/disk, "", true
		}
		if rest != "" {
			rest = " " + rest
		}
		return m.val, rest, true
	}
	return 0, "", false
}

// rate tells whether more of a unit is better.
func rate(unit string) bool {
	unit, _, _ = strings.Cut(unit, "-")
	return strings.HasSuffix(unit, "/s")
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
