package targettest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"benchrun/harness/target"
)

// What has to come out of a job in a mode, other than a number of records.
const (
	modelled = -1 // as many as the model says
	notRun   = -2 // it is not a job of this mode
)

// jobCase is a job with what has to come out of it.
type jobCase struct {
	name             string
	streaming, batch int64
	lines            []string // see Workload
}

func jobCases(words string) []jobCase {
	const (
		seq   = "records = 3000, record-size = \"64 B\", keys = 50, splits = 8"
		s     = "s sequence 0 " + seq
		a, b  = "a sequence 0 " + seq, "b sequence 0 " + seq
		codec = "options.\"taskmanager.network.compression.codec\"="
	)
	sums := []string{s, "k keyed-sum 3", "out verify-sink 2", "s hash k", "k rebalance out"}
	return []jobCase{
		{"map in waves", 3000, 3000, []string{"s sequence 7 " + seq, "m map 5", "out verify-sink 3", "s rebalance m", "m rescale out"}},
		{"chained", 3000, 3000, []string{s, "m map 0", "out verify-sink 0", "s forward m", "m forward out"}},
		{"filter and flat-map", modelled, modelled, []string{s, "f filter 0 keep = 0.3", "x flat-map 0 fan-out = 3", "out verify-sink 3", "s forward f", "f forward x", "x shuffle out"}},
		{"keyed-sum", 3000, 3000, []string{s + ", key-skew = 1.1", "k keyed-sum 3 state-size = \"20 B\"", "out verify-sink 0", "s hash k", "k rebalance out"}},
		{"count-by-key", 3000, 50, []string{s, "k count-by-key 3", "out verify-sink 2", "s hash k", "k rebalance out"}},
		{"sort", notRun, 3000, []string{s, "o sort 3", "out verify-sink 2", "s hash o", "o rebalance out"}},
		{"window-sum", modelled, modelled, []string{s, "w window-sum 3 size = \"70 ms\"", "out verify-sink 0", "s hash w", "w rebalance out"}},
		{"sum of a window's sums", modelled, modelled, []string{s, "w window-sum 3 size = \"70 ms\"", "m map 0", "out verify-sink 0", "s hash w", "w rebalance m", "m forward out"}},
		{"join", 3000, 3000, []string{a, b, "j join 3", "out verify-sink 0", "a hash j", "b hash j", "j rebalance out"}},
		{"co-map", 6000, 6000, []string{a, b, "c co-map 3", "out verify-sink 0", "a rebalance c", "b rebalance c", "c rebalance out"}},
		{"broadcast-map", 6000, 6000, []string{a, b, "c broadcast-map 3", "out verify-sink 0", "a rebalance c", "b broadcast c", "c rebalance out"}},
		{"words", 40*7 + 2 + 40*1, modelled, []string{fmt.Sprintf("t lines 0 paths = [%q]", words), "w split-words 0", "k count-by-key 3", "out verify-sink 0", "t rebalance w", "w hash k", "k rebalance out"}},
		{"words into files", notRun, modelled, []string{fmt.Sprintf("t lines 0 paths = [%q]", words), "w split-words 0", "k count-by-key 0", "out file-sink 2", "t forward w", "w hash k", "k rebalance out", "workload.vertex.k.parallelism=0"}},
		{"committed files", 3000, 3000, []string{s, "k keyed-sum 3", "out file-sink 0", "s hash k", "k rebalance out"}},
		{"two file sinks, one folder", 6000, 6000, []string{s, "out file-sink 0", "out-1 file-sink 0", "s rebalance out", "s rebalance out-1"}},
		{"no compression", notRun, 3000, append([]string{codec + "NONE"}, sums...)},
		{"zstd", notRun, 3000, append([]string{codec + "ZSTD"}, sums...)},
		{"decided at run time", notRun, 50, []string{s, "k count-by-key 0", "out verify-sink 0", "s hash k", "k rebalance out", "workload.parallelism=0"}},
	}
}

// jobs runs every operator in every mode that it is for: streaming on slots for
// all, batch in waves.
func jobs(t *testing.T, sut target.Target) {
	words := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(words, []byte(strings.Repeat("the quick, brown fox\r\n\njumps over Straße_9 -- twice\n", 40)+"no end"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range jobCases(words) {
		if c.streaming != notRun {
			t.Run("streaming/"+c.name, func(t *testing.T) {
				s := start(t, sut, Workload(t, sut.Name(), c.lines...))
				s.prove(c.streaming)
				if st := s.job.Status(); st.RestoredShare != 1 {
					t.Errorf("%+v", st)
				}
			})
		}
		if c.batch != notRun {
			t.Run("batch/"+c.name, func(t *testing.T) {
				s := start(t, sut, BatchWorkload(t, sut.Name(), c.lines...))
				out := s.prove(c.batch)
				if out.Batch == nil || out.Batch.LeftoverBytes == nil || *out.Batch.LeftoverBytes != 0 {
					t.Errorf("figures %+v", out.Batch)
				}
				if p := s.job.Status().Progress; p < 0.5 || p > 1 {
					t.Errorf("progress %v in the end", p)
				}
			})
		}
	}
}
