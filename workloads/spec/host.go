package spec

import (
	"fmt"
	"os"
	"strings"

	"benchrun/runtime/options"
)

// checkHost warns of what this host would not let the job do. The same file is
// right elsewhere, so these are no problems.
func (d *decoder) checkHost() {
	w := d.w
	if path := options.RecoveryPath.Get(w.Options); path != "" && !strings.Contains(path, "://") {
		if n := d.optionsAt[options.RecoveryPath.Key()]; n != nil {
			if _, err := os.Stat(path); err != nil {
				d.r.warn(n.at.problem("options."+quoteSegment(options.RecoveryPath.Key()), n.show(), "there is no such checkpoint or savepoint here", "it has to be there when the run begins"))
			}
		}
	}
	if limit, known := openFileLimit(); known && w.Cluster.Target == "embedded" {
		if need := w.OpenFiles(); uint64(need) > limit {
			at := d.root.at
			if n := d.root.get("workload"); n != nil {
				at = n.keyAt
			}
			d.r.warn(at.problem("workload", "", fmt.Sprintf("the job may have %d files and sockets open, but this system allows a process %d", need, limit), fmt.Sprintf("ulimit -n %d", 2*need)))
		}
	}
}

// OpenFiles estimates the files and sockets that a process with the whole
// cluster in it has open at its widest: both ends of a connection for each pair
// of workers and direction, the control connections, and for each subtask what
// it reads, spills and writes into a checkpoint.
func (w *Workload) OpenFiles() int {
	const process, perSubtask = 64, 4
	widest := 0
	for _, stage := range w.stages() {
		subtasks := 0
		for _, p := range stage {
			subtasks += p
		}
		widest = max(widest, subtasks)
	}
	n := w.Cluster.Workers
	return process + 2*n*(n-1) + 3*n + perSubtask*widest
}
