package verdict

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"benchrun/harness/result"
)

// harmless are the keys of a workload file that change how often is measured,
// not what.
var harmless = []string{"run.repeats", "run.warmup", "run.seed", "run.trial-timeout", "run.primary"}

// comparable tells in words what forbids to compare a workload of two runs;
// nothing: they compare.
func comparable(head, base *result.Loaded, workload string) (forbids, doubts []string) {
	h, b := findWorkload(&head.Run, workload), findWorkload(&base.Run, workload)
	if b == nil {
		return []string{fmt.Sprintf("the baseline %s does not have the workload %s", base.Run.Run, workload)}, nil
	}
	say := func(format string, args ...any) {
		forbids = append(forbids, workload+": "+fmt.Sprintf(format, args...))
	}
	if head.Run.Schema != base.Run.Schema {
		say("schema: %d, not %d", head.Run.Schema, base.Run.Schema)
	}
	if !head.Run.Machine.Known() || !base.Run.Machine.Known() {
		say("machine: one of the runs does not say where it ran")
	}
	for _, d := range base.Run.Machine.Differences(head.Run.Machine) {
		say("another machine: %s", d)
	}
	if x, y := base.Run.Machine.KernelSeries(), head.Run.Machine.KernelSeries(); x != y {
		doubts = append(doubts, fmt.Sprintf("kernel: %s, not %s", orUnknown(y), orUnknown(x)))
	}
	for _, d := range base.Run.Machine.Doubts(head.Run.Machine) {
		doubts = append(doubts, "perhaps another machine: "+d)
	}
	for _, x := range []struct {
		run *result.Loaded
		w   *result.Workload
	}{{head, h}, {base, b}} {
		if slices.Contains(x.run.Edited, workload) {
			say("%s", edited(x.run, x.w))
		}
	}
	switch {
	case h.SHA256 == "" || b.SHA256 == "":
		if h.Text == "" || h.Text != b.Text {
			say("the text of the workload is not recorded in both runs")
		}
	case h.SHA256 != b.SHA256:
		say("another text of the workload: %s", firstDifference(b.Text, h.Text))
	case h.Text != b.Text:
		say("another text of the workload under the same hash: %s", firstDifference(b.Text, h.Text))
	}
	if h.Primary != b.Primary {
		say("another primary metric: %s, not %s", orUnknown(h.Primary), orUnknown(b.Primary))
	}
	if x, y := changes(base.Run.Overrides), changes(head.Run.Overrides); !slices.Equal(x, y) {
		say("other overrides: %q, not %q", y, x)
	}
	if x, y := base.Run.Settings.Target, head.Run.Settings.Target; x != y {
		say("another target: %s, not %s", orDefault(y), orDefault(x))
	}
	for _, name := range sortedKeys(base.Run.Targets) {
		if y, ok := head.Run.Targets[name]; ok && y != base.Run.Targets[name] {
			doubts = append(doubts, fmt.Sprintf("target %s: version %s, not %s", name, y, base.Run.Targets[name]))
		}
	}
	return forbids, doubts
}

// edited tells that the text of a workload is not the one that was measured.
func edited(l *result.Loaded, w *result.Workload) string {
	return fmt.Sprintf("the text that %s holds was changed after the run, or is not there: its SHA-256 is %x, not %s", l.Run.Run, sha256.Sum256([]byte(w.Text)), orUnknown(w.SHA256))
}

func findWorkload(r *result.Run, name string) *result.Workload {
	for i := range r.Workloads {
		if r.Workloads[i].Name == name {
			return &r.Workloads[i]
		}
	}
	return nil
}

// changes are the overrides that change what is measured. The last one of a
// key counts, and keys of one file do not depend on each other's order.
func changes(overrides []string) []string {
	last := map[string]string{}
	for _, o := range overrides {
		key, value, _ := strings.Cut(o, "=")
		last[strings.TrimSpace(key)] = value
	}
	var out []string
	for _, key := range sortedKeys(last) {
		if !slices.Contains(harmless, key) {
			out = append(out, key+"="+last[key])
		}
	}
	return out
}

// firstDifference shows where two texts part.
func firstDifference(old, new string) string {
	a, b := strings.Split(old, "\n"), strings.Split(new, "\n")
	for i := range max(len(a), len(b)) {
		line := func(s []string) string {
			if i >= len(s) {
				return "nothing"
			}
			return fmt.Sprintf("%q", s[i])
		}
		if x, y := line(a), line(b); x != y {
			return fmt.Sprintf("line %d is %s, not %s", i+1, y, x)
		}
	}
	return "the hashes differ, the recorded texts do not"
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func orDefault(s string) string {
	if s == "" {
		return "the file's"
	}
	return s
}
