package spec

import (
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpected(t *testing.T) {
	base, err := os.ReadFile("testdata/base.toml")
	if err != nil {
		t.Fatal(err)
	}
	const waits = `
[[scenario.step]]
wait = { first-checkpoint = true, drained = true }
[[scenario.step]]
do = "fail-task"
vertex = "slow"
[[scenario.step]]
wait = { running = true, caught-up = true }
`
	for _, c := range []struct {
		sets []string
		want string
	}{
		{nil, "time_to_first_checkpoint_s time_to_drained_s"},
		{[]string{"run.primary=throughput_records_per_s"}, "throughput_records_per_s time_to_first_checkpoint_s time_to_drained_s"},
		{[]string{`options."execution.state-recovery.path"=/chk`}, ""},
		{[]string{"scenario.step.rescale.parallelism={}", "scenario.step.rescale={}"}, "error"},
	} {
		sets := append([]string{"workload.vertex.numbers.params.rate=100/s"}, c.sets...)
		f, err := Parse("w.toml", "/", append(base, waits...), sets)
		if err != nil {
			if c.want != "error" {
				t.Errorf("%q: %v", c.sets, err)
			}
			continue
		}
		w, err := f.Resolve("default")
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(w.Expected(), " "); got != c.want {
			t.Errorf("%q: expects %q, want %q", c.sets, got, c.want)
		}
	}
}

// TestCells: whatever the matrix, ids are unique, every cell resolves to a
// workload of its own values, and nothing is both run and left out.
func TestCells(t *testing.T) {
	base, err := os.ReadFile("testdata/base.toml")
	if err != nil {
		t.Fatal(err)
	}
	axes := map[string][]string{
		`"execution.checkpointing.unaligned.recover-output-on-downstream.enabled"`: {"true", "false"},
		`"execution.checkpointing.unaligned.during-recovery.enabled"`:              {"false", "true"},
		`"execution.checkpointing.timeout"`:                                        {`"1 min"`, `"90s"`, `"2m"`},
		`"workload.parallelism"`:                                                   {"1", "2", "4"},
		`"workload.vertex.numbers.params.rate"`:                                    {`"10/s"`, `"3 / min"`},
		`"cluster.network-memory"`:                                                 {`"64 MiB"`, `"0.5 GiB"`},
	}
	names := make([]string, 0, len(axes))
	for n := range axes {
		names = append(names, n)
	}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("\n[matrix]\n")
		product := 1
		for _, name := range rapid.Permutation(names).Draw(t, "axes")[:rapid.IntRange(1, len(names)).Draw(t, "n")] {
			values := rapid.Permutation(axes[name]).Draw(t, "values")
			values = values[:rapid.IntRange(1, len(values)).Draw(t, "k")]
			product *= len(values)
			b.WriteString(name + " = [" + strings.Join(values, ", ") + "]\n")
		}
		f, err := Parse("w.toml", "/", append(base[:len(base):len(base)], b.String()...), nil)
		if err != nil {
			if !strings.Contains(err.Error(), "no option set can run") {
				t.Fatal(err)
			}
			return
		}
		seen := map[string]bool{}
		for _, c := range append(f.Cells(), f.LeftOut()...) {
			if seen[c.ID] {
				t.Fatalf("cell %s twice", c.ID)
			}
			seen[c.ID] = true
			if strings.ContainsAny(c.ID, " /") {
				t.Fatalf("cell id %q", c.ID)
			}
			if len(c.Flags) != len(c.Values) {
				t.Fatalf("cell %s has %d flags and %d values", c.ID, len(c.Flags), len(c.Values))
			}
		}
		if len(seen) != product {
			t.Fatalf("%d cells, want %d", len(seen), product)
		}
		for _, c := range f.Cells() {
			w, err := f.Resolve(c.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range c.Values {
				if got, ok := w.Options.Map()[v.Key]; ok && got != v.Value {
					t.Fatalf("%s: %s is %v", c.ID, v.Key, got)
				}
				if v.Key == "workload.parallelism" && int64(w.Parallelism) != v.Value {
					t.Fatalf("%s: parallelism %d", c.ID, w.Parallelism)
				}
			}
		}
	})
}
