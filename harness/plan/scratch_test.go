package plan

import (
	"strings"
	"testing"

	"benchrun/workloads/spec"
)

const batchSample = `schema = 1
name = "stages"
[workload]
mode = "batch"
[[workload.vertex]]
id = "numbers"
operator = "sequence"
params = { records = 10 }
[[workload.vertex]]
id = "out"
operator = "verify-sink"
[[workload.edge]]
from = "numbers"
to = "out"
partitioner = "hash"
[[scenario.step]]
do = "finish"
`

// A flag about the log of batch jobs is not ignored without a word.
//
// Fails if the mode of a workload is not looked at, if one cell with recovery is not
// enough, or if cells that --only leaves out count.
func TestCheckScratch(t *testing.T) {
	const recovery = "execution.batch.job-recovery.enabled"
	batch := func(head string) *spec.File {
		f, err := spec.Parse("stages.toml", "/dir", []byte(strings.Replace(batchSample, "[workload]\n", head+"[workload]\n", 1)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	on, off, both := batch("[options]\n\""+recovery+"\" = true\n"), batch(""), batch("[matrix]\n\""+recovery+"\" = [true, false]\n")
	for _, x := range []struct {
		name, only, want string
		files            []*spec.File
	}{
		{name: "recovery", files: []*spec.File{on}},
		{name: "one cell with recovery", files: []*spec.File{both}},
		{name: "no recovery", files: []*spec.File{off}, want: recovery + " is off in all cells"},
		{name: "only the cell without", only: "cell:J=false", files: []*spec.File{both}, want: recovery + " is off in all cells"},
		{name: "streaming", files: []*spec.File{load(t, "a", "x")}, want: `workload "a" (a.toml) is streaming`},
		{name: "both", files: []*spec.File{on, load(t, "a", "x")}, want: `--only '!workload:a'`},
		{name: "what is left of both", only: "!workload:a", files: []*spec.File{on, load(t, "a", "x")}},
	} {
		p, err := New(Input{Files: x.files, Only: x.only})
		if err != nil {
			t.Fatal(x.name, err)
		}
		got := ""
		if err := p.CheckScratch(); err != nil {
			got = err.Error()
		}
		if (got == "") != (x.want == "") || !strings.Contains(got, x.want) {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}
