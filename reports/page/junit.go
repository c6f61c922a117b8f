package page

import (
	"encoding/xml"
	"fmt"
	"strings"

	"benchrun/harness/result"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr,omitempty"`
	Timestamp string      `xml:"timestamp,attr,omitempty"`
	Hostname  string      `xml:"hostname,attr,omitempty"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string       `xml:"classname,attr"`
	Name    string       `xml:"name,attr"`
	Time    string       `xml:"time,attr,omitempty"`
	Failure *junitResult `xml:"failure"`
	Error   *junitResult `xml:"error"`
	Skipped *junitResult `xml:"skipped"`
	Out     string       `xml:"system-out,omitempty"`
}

type junitResult struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit is the run as test cases: one a cell, one a limit. Wrong output and a
// broken limit are failures; what was not measured is an error; what the target
// does not support is skipped.
func junit(l *result.Loaded, v *view) ([]byte, error) {
	all := junitSuites{Name: l.Run.Run}
	for _, w := range v.Workloads {
		s := junitSuite{Name: w.Name, Timestamp: l.Run.Started.UTC().Format("2006-01-02T15:04:05"), Hostname: l.Run.Machine.Hostname}
		total := 0.0
		for i := range w.columns {
			c, seconds := w.junitCell(i)
			total += seconds
			s.Cases = append(s.Cases, c)
		}
		if w.Limits != nil {
			for _, r := range w.Limits.Rows {
				s.Cases = append(s.Cases, junitLimit(w.Name, r))
			}
		}
		s.Time = fmt.Sprintf("%.3f", total)
		all.count(&s)
		all.Suites = append(all.Suites, s)
	}
	return encodeJUnit(all)
}

// count adds up the cases of a suite.
func (all *junitSuites) count(s *junitSuite) {
	for _, c := range s.Cases {
		s.Tests++
		switch {
		case c.Failure != nil:
			s.Failures++
		case c.Error != nil:
			s.Errors++
		case c.Skipped != nil:
			s.Skipped++
		}
	}
	all.Tests, all.Failures, all.Errors, all.Skipped = all.Tests+s.Tests, all.Failures+s.Failures, all.Errors+s.Errors, all.Skipped+s.Skipped
}

func encodeJUnit(all junitSuites) ([]byte, error) {
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	return append([]byte(xml.Header), append(b, '\n')...), nil
}

func (w *workloadView) junitCell(i int) (junitCase, float64) {
	col := &w.columns[i]
	c := junitCase{Class: w.Name, Name: col.Name}
	seconds := 0.0
	var wrong, broken, unsupported []string
	ok := 0
	for j := range col.Trials {
		t := &col.Trials[j]
		seconds += t.WallS
		line := fmt.Sprintf("trial %s, block %d: %s %s", t.Trial, t.Block, t.Outcome, reason(t))
		switch t.Outcome {
		case result.OK:
			ok++
		case result.Incorrect:
			wrong = append(wrong, line)
		case result.Unsupported:
			unsupported = append(unsupported, line)
		default:
			broken = append(broken, line)
		}
	}
	if missing := col.Planned - len(col.Trials); missing > 0 {
		broken = append(broken, fmt.Sprintf("%s of %d missing", count(missing, "trial", "trials"), col.Planned))
	}
	c.Time = fmt.Sprintf("%.3f", seconds)
	all := strings.Join(append(append(append([]string{}, wrong...), broken...), unsupported...), "\n")
	switch {
	case len(wrong) > 0:
		c.Failure = &junitResult{"incorrect", fmt.Sprintf("wrong output in %s", count(len(wrong), "trial", "trials")), all}
	case len(broken) > 0:
		c.Error = &junitResult{"not measured", fmt.Sprintf("%d of %d trials ok", ok, col.Planned), all}
	case len(unsupported) > 0:
		c.Skipped = &junitResult{Message: "not supported by the target", Text: all}
	}
	if s, have := w.stat(i, w.spec.Primary); have {
		c.Out = fmt.Sprintf("%s: median %.6g %s of %d samples", w.spec.Primary, s.Median, s.Unit, s.N)
	}
	return c, seconds
}

func junitLimit(workload string, r row) junitCase {
	c := junitCase{Class: workload, Name: r.Title + ": " + r.Cells[0].Text}
	switch kept := r.Cells[3]; {
	case kept.Text == "no data":
		c.Error = &junitResult{"no data", "no sample to hold against the limit", ""}
	case kept.Class == "bad":
		c.Failure = &junitResult{"limit", "the limit is broken: " + r.Cells[1].Text, ""}
	}
	return c
}
