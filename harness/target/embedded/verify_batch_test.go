package embedded

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"benchrun/runtime/control"
	"benchrun/runtime/operator"
	"benchrun/runtime/task"
	"benchrun/workloads/spec"
)

// What records alone do not show.
//
// Fails if a source's splits are not held against what it had to emit, or if files
// under a sink's name are not held against what was committed, either way round.
func TestWhatABatchJobLeavesBehind(t *testing.T) {
	w := &spec.Workload{Vertices: []spec.Vertex{{ID: "numbers", Operator: "sequence", Kind: spec.Source}, {ID: "out", Operator: "file-sink", Kind: spec.Sink}}}
	split := func(index, emitted int) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint32(nil, uint32(index)), uint64(emitted))
	}
	read := func(subtask, attempt int, splits ...[]byte) control.Report {
		return control.Report{Task: task.ID{Vertex: "numbers", Subtask: subtask, Attempt: attempt}, Operator: "numbers", Data: &task.SourceReport{Splits: splits}}
	}
	good := []control.Report{read(0, 0, split(0, 25), split(2, 25)), read(1, 0, split(1, 25), split(3, 25))}
	for _, c := range []struct {
		name    string
		reports []control.Report // beside the sink's
		files   []string         // in its folder
		said    []string         // by the sink, to be committed
		want    []string
	}{
		{"all well", good, []string{"part-out-0-0-x", "part-out-1-0-y"}, []string{"part-out-0-0-x", "part-out-1-0-y"}, nil},
		{"a file of another sink", good, []string{"part-out-2-0-0-x", ".part-out-2-0-0-x", "notes"}, nil, nil},
		{"a split that nobody read", []control.Report{read(0, 0, split(0, 25), split(2, 25)), read(1, 0, split(1, 25))}, nil, nil,
			[]string{"the splits of numbers were read to record 75 together, of 100: 3 splits"}},
		{"not to its end", []control.Report{read(0, 0, split(0, 25), split(2, 25)), read(1, 0, split(1, 25), split(3, 24))}, nil, nil,
			[]string{"the splits of numbers were read to record 99 together, of 100: 4 splits"}},
		{"by two", []control.Report{read(0, 0, split(0, 25), split(2, 25), split(3, 0)), read(1, 0, split(1, 25), split(3, 25))}, nil, nil,
			[]string{"split 3 of numbers was read by subtask 0 and by subtask 1"}},
		{"two attempts count", append([]control.Report{read(1, 1000)}, good...), nil, nil,
			[]string{"numbers/1 was committed twice: attempts 1000 and 0"}},
		{"an orphan", good, []string{".part-out-0-0-x"}, nil, []string{".part-out-0-0-x was left behind: it was never committed"}},
		{"a file too many", good, []string{"part-out-0-0-x", "part-out-0-0-y"}, []string{"part-out-0-0-x"},
			[]string{"part-out-0-0-y is there and was not to be committed"}},
		{"a file too few", good, nil, []string{"part-out-0-0-x"}, []string{"part-out-0-0-x was committed and is not there"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range c.files {
				if err := os.WriteFile(filepath.Join(dir, f), nil, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			sink := control.Report{Task: task.ID{Vertex: "out"}, Operator: "out", Data: &operator.FileReport{Dir: dir, Prefix: "part-out-", Files: c.said}}
			got, err := verifyBatch(w, append(c.reports, sink), map[string]int64{"numbers": 100})
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}
