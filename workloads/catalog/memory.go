package catalog

import (
	"fmt"

	"benchrun/runtime/cluster"
	"benchrun/workloads/spec"
)

// CheckMemory finds the cells of a file in which tasks of a batch job could not
// write what they make, each at its place in the file. What several cells have in
// common is told once.
func CheckMemory(f *spec.File) (problems spec.Problems, err error) {
	if f.Mode != spec.Batch {
		return nil, nil
	}
	told := map[spec.Problem]bool{}
	for _, c := range f.Cells() {
		w, err := f.Resolve(c.ID)
		if err != nil {
			return nil, err
		}
		j, err := job(w, unread)
		if err != nil {
			return nil, err
		}
		need, err := cluster.CheckMemory(j, cluster.Config{
			Values: w.Options, Slots: w.Cluster.SlotsPerWorker, NetworkMemory: w.Cluster.NetworkMemory, BufferSize: int(w.Cluster.BufferSize),
		})
		if err != nil {
			return nil, fmt.Errorf("%s: cell %s: %w", f.Path, c.ID, err)
		}
		if need == nil {
			continue
		}
		if p := f.AtCluster(c.ID, "network-memory", need.Error(), need.Hint()); !told[p] {
			told[p] = true
			problems = append(problems, p)
		}
	}
	return problems, nil
}
