package control

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"benchrun/runtime/failpoint"
	"benchrun/runtime/joblog"
)

func reportsOf(vertex string, epoch uint64, attempt int) joblog.AttemptID {
	return joblog.AttemptID{TaskID: joblog.TaskID{Vertex: vertex, Subtask: 3}, Epoch: epoch, Attempt: attempt}
}

// said is a report that tells whose it is.
func said(id joblog.AttemptID) []Report { return []Report{{Operator: id.String(), Data: id.String()}} }

func names(reports []Report) (all []string) {
	for _, r := range reports {
		all = append(all, r.Operator)
	}
	slices.Sort(all)
	return all
}

func init() { gob.Register("") }

// Names of files tell attempts apart, and back.
func TestReportNames(t *testing.T) {
	for _, id := range []joblog.AttemptID{reportsOf("a", 1, 0), reportsOf("a~b-c.d/é", 7, 12), {}} {
		for _, name := range []string{reportName(id), "." + reportName(id), ".." + reportName(id) + "-123"} {
			if got, ok := reporter(name); !ok || got != id {
				t.Errorf("%q is of %v, %v; want %v", name, got, ok, id)
			}
		}
	}
	for _, name := range []string{"", ".", "x~1~e1a0", "61~1~e1", "61~1~e1a0x", "61~01~e1a0", ".DS_Store"} {
		if got, ok := reporter(name); ok {
			t.Errorf("%q is of %v", name, got)
		}
	}
}

// Only reports that are committed count; a commit may be repeated; what is missing
// is told apart from what fails.
//
// Fails if ReadReports takes hidden files, or if CommitReports returns another
// error for reports that are not there.
func TestReportsCountWhenCommitted(t *testing.T) {
	dir := t.TempDir()
	one, two := reportsOf("a", 1, 0), reportsOf("a", 1, 1)
	for _, id := range []joblog.AttemptID{one, two} {
		if err := WriteReports(dir, id, said(id)); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		got, err := CommitReports(dir, two)
		if err != nil || !slices.Equal(names(got), []string{two.String()}) {
			t.Fatal(names(got), err)
		}
	}
	if all, err := ReadReports(dir); err != nil || !slices.Equal(names(all), []string{two.String()}) {
		t.Error(names(all), err)
	}
	if err := DropReports(dir, 1); err != nil {
		t.Fatal(err)
	}
	_, err := CommitReports(dir, one)
	var missing *MissingReportsError
	if !errors.As(err, &missing) || missing.Attempt != one {
		t.Errorf("reports that were dropped: %v", err)
	}
}

// A crash at any point of writing reports, of committing or of taking them back
// leaves what can be repeated, and is: in the end the reports to keep count, those
// of later epochs are as they were, and the others are gone, their files before
// them.
//
// Fails if WithdrawReports removes reports before undo, if it ignores keep or the
// epoch, or if a hidden report is not taken back: a master that goes on could commit
// it.
func TestReportsSurviveCrashes(t *testing.T) {
	crash := errors.New("crash")
	void, hidden, kept, later := reportsOf("a", 1, 0), reportsOf("b", 1, 0), reportsOf("c", 1, 0), reportsOf("a", 2, 0)
	for _, name := range failpoint.Names() {
		if !strings.HasPrefix(name, "reports/") {
			continue
		}
		point, err := failpoint.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		for hit := 1; ; hit++ {
			dir := t.TempDir()
			met := false
			disarm := point.Arm(func(n int, _ string) error {
				if n == hit {
					met = true
					return crash
				}
				return nil
			})
			files := map[string]bool{}
			steps := []func() error{}
			for _, id := range []joblog.AttemptID{void, hidden, kept, later} {
				files[id.String()] = true
				steps = append(steps, func() error { return WriteReports(dir, id, said(id)) })
			}
			for _, id := range []joblog.AttemptID{void, kept, later} {
				steps = append(steps, func() error { _, err := CommitReports(dir, id); return err })
			}
			steps = append(steps, func() error { return SyncReports(dir) }, func() error {
				return WithdrawReports(dir, 2, map[joblog.AttemptID]bool{kept: true}, func(reports []Report) error {
					for _, r := range reports {
						delete(files, r.Operator)
					}
					return nil
				})
			})
			for i, step := range steps {
				err := step()
				if errors.Is(err, crash) {
					err = step() // by whoever comes next
				}
				if err != nil {
					t.Fatalf("%s, hit %d, step %d: %v", name, hit, i, err)
				}
			}
			disarm()
			at := fmt.Sprintf("%s, hit %d", name, hit)
			all, err := ReadReports(dir)
			if want := []string{later.String(), kept.String()}; err != nil || !slices.Equal(names(all), want) {
				t.Errorf("%s: %q count, %v; want %q", at, names(all), err, want)
			}
			if len(files) != 2 || !files[kept.String()] || !files[later.String()] {
				t.Errorf("%s: files that are left: %v", at, files)
			}
			for _, id := range []joblog.AttemptID{void, hidden} {
				var missing *MissingReportsError
				if _, err := CommitReports(dir, id); !errors.As(err, &missing) {
					t.Errorf("%s: a master that goes on could commit %s: %v", at, id, err)
				}
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
				t.Errorf("%s: %d files, %v", at, len(left), err)
			}
			if !met {
				if hit == 1 {
					t.Errorf("%s was never passed", name)
				}
				break
			}
		}
	}
}
