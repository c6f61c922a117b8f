package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	in := `goos: linux
BenchmarkSteady/workers=1-2   1   9000000 ns/op   11.5 Mrec/s   12 Mrec/s-target
BenchmarkRescale/4-6-2   1   9 ns/op   0.2 s-checkpoint   0.1 s-checkpoint-target+writing   30 MB-first   0.04 s-running   0.05 s-running-target
BenchmarkSync-2   1   9 ns/op   200 MB/s-synced
BenchmarkEncode-2   1   9 ns/op   3 B/op
PASS
ok  	x	1.2s
`
	var out strings.Builder
	ok, err := table(strings.NewReader(in), &out)
	if err != nil || !ok {
		t.Fatalf("ok = %v, err = %v", ok, err)
	}
	got := map[string]bool{}
	for l := range strings.Lines(out.String()) {
		got[strings.Join(strings.Fields(l), " ")] = true
	}
	for _, want := range []string{
		"goos: linux",
		"Steady/workers=1 Mrec/s 11.5 >= 12 missed",
		"Rescale/4-6 s-checkpoint 0.2 <= 0.25 ok", // 0.1 + 30/200
		"Rescale/4-6 MB-first 30",
		"Rescale/4-6 s-running 0.04 <= 0.05 ok",
		"Sync MB/s-synced 200",
		"2 of 3 targets reached",
		"without a target, to be measured by themselves with go test -bench: Encode",
	} {
		if !got[want] {
			t.Errorf("no line %q in:\n%s", want, &out)
		}
	}
}

// What an aim grows by is said if it cannot be worked out.
func TestTableWithoutDisk(t *testing.T) {
	var out strings.Builder
	in := "BenchmarkRescale-2 1 9 ns/op 0.2 s-checkpoint 0.1 s-checkpoint-target+writing 30 MB-first\n"
	if ok, err := table(strings.NewReader(in), &out); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if !strings.Contains(out.String(), "<= 0.1 +writing") {
		t.Errorf("no note in:\n%s", &out)
	}
}

func TestTableFails(t *testing.T) {
	for _, in := range []string{"", "BenchmarkX-2 1 3 ns/op\n--- FAIL: BenchmarkY\nFAIL\n"} {
		if ok, _ := table(strings.NewReader(in), &strings.Builder{}); ok {
			t.Errorf("ok after %q", in)
		}
	}
}
