package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"benchrun/runtime/joblog"
)

// The result of a job comes back as it was written; one that cannot be read is
// refused with its name, and not taken for a job that has not ended.
//
// Fails if Read takes an error for no result, or forget keeps one.
func TestResultOfAJob(t *testing.T) {
	f := resultFile{t.TempDir(), "ID"}
	if r, err := f.Read(); r != nil || err != nil {
		t.Errorf("before the end: %v, %v", r, err)
	}
	want := joblog.JobFinished{Status: "FAILED", Error: "boom"}
	if err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	if r, err := f.Read(); err != nil || *r != want {
		t.Errorf("%+v, %v", r, err)
	}
	for _, damaged := range []string{"", "{", "{}", `{"Status":`} {
		if err := os.WriteFile(f.name(), []byte(damaged), 0o644); err != nil {
			t.Fatal(err)
		}
		if r, err := f.Read(); r != nil || err == nil || !strings.Contains(err.Error(), filepath.Join(f.state, "result.json")) {
			t.Errorf("%q: %v, %v", damaged, r, err)
		}
	}
	if err := (resultFile{f.state, "OTHER"}).Write(want); err != nil {
		t.Fatal(err)
	}
	if r, err := f.Read(); r != nil || err == nil || !strings.Contains(err.Error(), "another submission") {
		t.Errorf("the result of another submission: %v, %v", r, err)
	}
	for range 2 {
		if err := f.forget(); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := f.Read(); r != nil || err != nil {
		t.Errorf("forgotten: %v, %v", r, err)
	}
	if err := (resultFile{filepath.Join(f.state, "missing"), "ID"}).Write(want); err == nil || !strings.Contains(err.Error(), "result.json") {
		t.Errorf("a folder that is not there: %v", err)
	}
}
