package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"benchrun/runtime/control"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
	"benchrun/workloads/spec"
)

// verifyBatch holds what a batch job has left behind to what must be there whatever
// the records say: each task is committed once, each split was read once and to its
// end, and a file sink's folder has what was committed and nothing else. consumed
// is what the sources have to emit. It returns what is wrong, in words.
func verifyBatch(w *spec.Workload, reports []control.Report, consumed map[string]int64) (wrong []string, err error) {
	wrong = append(wrong, committedOnce(reports)...)
	for i := range w.Vertices {
		v := &w.Vertices[i]
		if v.Kind != spec.Source {
			continue
		}
		more, err := splitsConserved(v, reports, consumed[v.ID])
		if err != nil {
			return nil, fmt.Errorf("source %s: %w", v.ID, err)
		}
		wrong = append(wrong, more...)
	}
	more, err := filesCommitted(reports)
	return append(wrong, more...), err
}

// committedOnce finds tasks of which several attempts count.
func committedOnce(reports []control.Report) (wrong []string) {
	type key struct {
		operator, vertex string
		subtask          int
	}
	seen := map[key]task.ID{}
	for _, r := range reports {
		k := key{r.Operator, r.Task.Vertex, r.Task.Subtask}
		if first, twice := seen[k]; twice && first != r.Task {
			wrong = append(wrong, fmt.Sprintf("%s/%d was committed twice: attempts %d and %d", r.Operator, r.Task.Subtask, first.Attempt, r.Task.Attempt))
		}
		seen[k] = r.Task
	}
	return wrong
}

// splitsConserved finds splits of a source that were read by nobody, by several or
// not to their end.
func splitsConserved(v *spec.Vertex, reports []control.Report, records int64) (wrong []string, err error) {
	readers := map[int]task.ID{}
	emitted := int64(0)
	for _, r := range reports {
		x, ok := r.Data.(*task.SourceReport)
		if !ok || r.Operator != v.ID {
			continue
		}
		for _, b := range x.Splits {
			p, err := position(b, v.Operator == source.Lines)
			if err != nil {
				return nil, err
			}
			if first, twice := readers[p.Split]; twice {
				wrong = append(wrong, fmt.Sprintf("split %d of %s was read by subtask %d and by subtask %d", p.Split, v.ID, first.Subtask, r.Task.Subtask))
			}
			readers[p.Split] = r.Task
			emitted += int64(p.Emitted)
		}
	}
	if emitted != records {
		wrong = append(wrong, fmt.Sprintf("the splits of %s were read to record %d together, of %d: %d splits", v.ID, emitted, records, len(readers)))
	}
	return wrong, nil
}

// filesCommitted compares the folders of file sinks with what was committed.
func filesCommitted(reports []control.Report) (wrong []string, err error) {
	type sink struct{ dir, prefix, run string }
	files := map[sink]map[string]bool{}
	var sinks []sink
	for _, r := range reports {
		x, ok := r.Data.(*operator.FileReport)
		if !ok {
			continue
		}
		k := sink{x.Dir, x.Prefix, x.Run}
		if files[k] == nil {
			files[k] = map[string]bool{}
			sinks = append(sinks, k)
		}
		for _, n := range x.Files {
			files[k][n] = true
		}
	}
	for _, k := range sinks {
		entries, err := os.ReadDir(k.dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("committed files: %w", err)
		}
		for _, e := range entries {
			name := strings.TrimPrefix(e.Name(), ".")
			hidden, ok := (&operator.FileReport{Dir: k.dir, Prefix: k.prefix, Run: k.run}).Holds(e.Name())
			if !ok {
				continue // of another sink, or of another run
			}
			switch {
			case hidden:
				wrong = append(wrong, e.Name()+" was left behind: it was never committed")
			case !files[k][name]:
				wrong = append(wrong, name+" is there and was not to be committed")
			}
			delete(files[k], name)
		}
		for n := range files[k] {
			wrong = append(wrong, n+" was committed and is not there")
		}
	}
	slices.Sort(wrong)
	return wrong, nil
}
