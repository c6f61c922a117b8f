package catalog

import (
	"testing"

	"benchrun/runtime/cluster"
	"benchrun/workloads/spec"
)

const batchFile = `schema = 1
name = "words"
[options]
"execution.batch.job-recovery.enabled" = true
"execution.batch.job-recovery.mode" = "hardened"
[workload]
mode = "batch"
[[workload.vertex]]
id = "text"
operator = "lines"
params = { paths = ["nowhere/*.txt"] }
[[workload.vertex]]
id = "out"
operator = "verify-sink"
[[workload.edge]]
from = "text"
to = "out"
partitioner = "rebalance"
`

// What is told of a vertex has its place, the reason, and what would help; the
// files that it reads need not be there.
//
// Fails if the mode is not looked at, or if the place is that of another vertex.
func TestCheckRecovery(t *testing.T) {
	for _, c := range []struct {
		mode string
		say  *cluster.Unrecoverable // nil: what the cluster finds
		want string
	}{
		{"hardened", nil, ""},
		{"faithful", nil, `f.toml:9:6: workload.vertex.text: can be recovered only as a whole when the master is lost: coordinator "text" takes no snapshots outside checkpoints: ` +
			`unless all tasks of the vertex have finished, all run again (set options."execution.batch.job-recovery.mode" = "hardened", which can)`},
		{"hardened", &cluster.Unrecoverable{Vertex: "out", Reason: "nobody knows what it has read"},
			`f.toml:13:6: workload.vertex.out: cannot be recovered when the master is lost: nobody knows what it has read (set options."execution.batch.job-recovery.enabled" = false)`},
	} {
		f, err := spec.Parse("f.toml", "/", []byte(batchFile), []string{`options."execution.batch.job-recovery.mode"=` + c.mode})
		if err != nil {
			t.Fatal(err)
		}
		if c.say != nil {
			w, err := f.Resolve("default")
			if err != nil {
				t.Fatal(err)
			}
			if p, partial := tell(f, *c.say, w.Options); p.Error() != c.want || partial {
				t.Errorf("%s\nwant %s", p.Error(), c.want)
			}
			continue
		}
		problems, warnings, err := CheckRecovery(f)
		if err != nil || len(problems) > 0 || warnings.Error() != c.want {
			t.Errorf("%s: %v, %v\n%s\nwant %s", c.mode, problems, err, warnings.Error(), c.want)
		}
	}
}
