package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	ok, err := report(os.Stdin, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testlog:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// event is a line of `go test -json`.
type event struct {
	Action, Package, ImportPath, Test, Output string
	Elapsed                                   float64 // seconds
}

// skip is a test that did not run.
type skip struct{ pkg, test, why string }

// report reads events until EOF and tells whether all passed.
func report(in io.Reader, out io.Writer) (bool, error) {
	var (
		logs           = map[[2]string][]string{} // of what may yet fail, by package and test
		skipped        []skip
		passed, failed int // tests
		packages       int
		broken         bool
	)
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if err == io.EOF && line == "" {
			break
		}
		if err != nil && err != io.EOF {
			return false, err
		}
		var e event
		if json.Unmarshal([]byte(line), &e) != nil {
			fmt.Fprint(out, line) // what the go command says by itself
			continue
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output":
			logs[key] = append(logs[key], e.Output)
		case "build-output":
			fmt.Fprint(out, e.Output)
		case "build-fail":
			broken = true
		case "pass", "fail", "skip":
			text := logs[key]
			delete(logs, key)
			switch {
			case e.Action == "fail":
				for _, l := range text {
					fmt.Fprint(out, l)
				}
				broken = true
			case e.Action == "skip" && e.Test != "":
				skipped = append(skipped, skip{e.Package, e.Test, reason(text)})
			}
			switch {
			case e.Test == "":
				packages++
				if e.Action == "skip" {
					fmt.Fprintf(out, "-     %8s  %s\n", "no tests", e.Package)
				} else {
					fmt.Fprintf(out, "%-5s %7.1fs  %s\n", map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action], e.Elapsed, e.Package)
				}
			case e.Action == "pass":
				passed++
			case e.Action == "fail":
				failed++
			}
		}
	}
	fmt.Fprintf(out, "\n%d packages, %d tests passed, %d failed, %d skipped\n", packages, passed, failed, len(skipped))
	for _, s := range skipped {
		fmt.Fprintf(out, "  skipped %s %s: %s\n", s.pkg, s.test, s.why)
	}
	return !broken && packages > 0, nil
}

// reason is what a skipped test said: its output without the marks of the
// test framework and the position.
func reason(output []string) string {
	var said []string
	for _, l := range output {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasPrefix(l, "===") || strings.HasPrefix(l, "---") {
			continue
		}
		if _, after, ok := strings.Cut(l, ".go:"); ok {
			_, l, _ = strings.Cut(after, ": ")
		}
		said = append(said, l)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}
