package embedded

import (
	"encoding/json"
	"errors"

	"benchrun/runtime/operator"
	"benchrun/workloads/spec"
)

// Sweep removes what the file sinks of a batch job have left in folders that the
// workload names: the job was killed with all its processes, by its id. Files of
// others stay. Those of a streaming job carry no id, and stay, too.
func Sweep(w *spec.Workload, submission string) error {
	if w.Mode != spec.Batch {
		return nil
	}
	var errs []error
	for i := range w.Vertices {
		v := &w.Vertices[i]
		if v.Params.Path == "" {
			continue
		}
		params, err := json.Marshal(operator.Params{Path: v.Params.Path})
		if err != nil {
			return err
		}
		rep, ok, err := operator.SinkFolder(v.Operator, v.ID, params, "", submission)
		if ok && err == nil {
			err = operator.RemoveFiles(rep)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
