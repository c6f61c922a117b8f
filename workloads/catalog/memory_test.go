package catalog

import (
	"strings"
	"testing"

	"benchrun/workloads/spec"
)

// Too little network memory of a batch job is told once, with the number that is
// needed, at the key or at the value of the matrix that sets it; what is just enough
// is enough, and a streaming job has a rule of its own.
//
// Fails if the slots or the buffers that an option asks for do not count, if all
// cells have the place of the first one, or if a cell's problem is told for each
// vertex.
func TestCheckMemory(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		set  []string
		want string
	}{
		"enough":   {"", []string{"cluster.network-memory=384KiB", "cluster.slots-per-worker=2"}, ""},
		"too few":  {"", []string{"cluster.network-memory=383KiB", "cluster.slots-per-worker=2"}, `--set:1:24: cluster.network-memory = "383KiB": too little network memory: a task of "text" needs 3 buffers of 32KiB for each partition that it writes, so a worker needs at least 384KiB (raise cluster.network-memory to at least "384KiB", or lower cluster.buffer-size or cluster.slots-per-worker)`},
		"option":   {"", []string{"cluster.network-memory=384KiB", "cluster.slots-per-worker=2", "options.taskmanager.network.sort-shuffle.min-buffers=8"}, `needs at least 1MiB (raise cluster.network-memory to at least "1MiB", or lower cluster.buffer-size or cluster.slots-per-worker or taskmanager.network.sort-shuffle.min-buffers)`},
		"slots":    {"[cluster]\nslots-per-worker = 4000\n", nil, `f.toml:19:2: cluster.network-memory: too little`},
		"matrix":   {"[matrix]\n\"cluster.network-memory\" = [\"64 MiB\", \"1 MiB\"]\n", []string{"cluster.slots-per-worker=8"}, `f.toml:20:39: cluster.network-memory = "1 MiB": too little`},
		"vertices": {"[[workload.vertex]]\nid = \"more\"\noperator = \"map\"\n[[workload.vertex]]\nid = \"end\"\noperator = \"discard\"\n[[workload.edge]]\nfrom = \"text\"\nto = \"more\"\npartitioner = \"hash\"\n[[workload.edge]]\nfrom = \"more\"\nto = \"end\"\npartitioner = \"hash\"\n", []string{"cluster.network-memory=64KiB", "cluster.slots-per-worker=1"}, `a task of "text" needs 3 buffers of 32KiB for each partition that it writes, so a worker needs at least 384KiB`},
	} {
		f, err := spec.Parse("f.toml", "/", []byte(batchFile+c.text), c.set)
		if err != nil {
			t.Fatal(name, err)
		}
		problems, err := CheckMemory(f)
		if err != nil || (len(problems) == 0) != (c.want == "") || len(problems) > 1 || !strings.Contains(problems.Error(), c.want) {
			t.Errorf("%s: %v\n%s\nwant %s", name, err, problems.Error(), c.want)
		}
	}
}
