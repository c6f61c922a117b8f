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

// metric is one figure of a benchmark.
type metric struct {
	unit string
	val  float64
}

// table copies what is no benchmark line through, then prints all figures. It
// tells whether everything ran.
func table(in io.Reader, out io.Writer) (bool, error) {
	ok := true
	var rows []string
	missed, aims := 0, 0
	s := bufio.NewScanner(in)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		name, metrics, is := parse(line)
		if !is {
			if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL") {
				ok = false
			}
			if line != "PASS" && !strings.Contains(line, "[no test files]") && !strings.HasPrefix(line, "Benchmark") {
				fmt.Fprintln(out, line)
			}
			continue
		}
		fmt.Fprintln(out, "  measured", name)
		for _, m := range metrics {
			if strings.Contains(m.unit, "-target") {
				continue
			}
			aim, note, has := target(metrics, m.unit)
			row := fmt.Sprintf("%s\t%s\t%s\t", name, m.unit, number(m.val))
			if has {
				aims++
				sign, good := "<=", m.val <= aim
				if rate(m.unit) {
					sign, good = ">=", m.val >= aim
				}
				verdict := "ok"
				if !good {
					verdict = "missed"
					missed++
				}
				row += fmt.Sprintf("%s %s%s\t%s", sign, number(aim), note, verdict)
			} else {
				row += "\t"
			}
			rows = append(rows, row)
		}
	}
	if err := s.Err(); err != nil {
		return false, err
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "benchmark\tfigure\tmeasured\ttarget\t")
	for _, r := range rows {
		fmt.Fprintln(w, r)
	}
	if err := w.Flush(); err != nil {
		return false, err
	}
	fmt.Fprintf(out, "\n%d of %d targets reached\n", aims-missed, aims)
	return ok && len(rows) > 0, nil
}

// parse reads "BenchmarkName-2  1  12 ns/op  3 B/op".
func parse(line string) (name string, metrics []metric, ok bool) {
	f := strings.Fields(line)
	if len(f) < 4 || len(f)%2 != 0 || !strings.HasPrefix(f[0], "Benchmark") {
		return "", nil, false
	}
	if _, err := strconv.Atoi(f[1]); err != nil {
		return "", nil, false
	}
	for i := 2; i < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return "", nil, false
		}
		metrics = append(metrics, metric{f[i+1], v})
	}
	name = strings.TrimPrefix(f[0], "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			name = name[:i]
		}
	}
	return name, metrics, true
}

// target finds what a figure aims at, and what its name adds to it.
func target(all []metric, unit string) (aim float64, note string, ok bool) {
	for _, m := range all {
		if rest, found := strings.CutPrefix(m.unit, unit+"-target"); found {
			if rest != "" {
				rest = " " + rest
			}
			return m.val, rest, true
		}
	}
	return 0, "", false
}

// rate tells whether more of a unit is better.
func rate(unit string) bool {
	unit, _, _ = strings.Cut(unit, "-")
	return strings.HasSuffix(unit, "/s")
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }
