package verdict

import (
	"fmt"
	"strings"

	"benchrun/harness/result"
)

// shortNames are the flags that are not named after the last segment of their
// option's key.
var shortNames = map[string]string{
	"U": "execution.checkpointing.unaligned.enabled",
	"R": "execution.checkpointing.unaligned.recover-output-on-downstream.enabled",
	"D": "execution.checkpointing.unaligned.during-recovery.enabled",
	"J": "execution.batch.job-recovery.enabled",
}

// coverage asks whether the options that a matrix varies were really varied: a
// flag with several planned values must have been read back with several. A
// flag that the running tasks do not report, such as a path of the workload
// file, is not looked at.
func (g *gate) coverage() {
	for _, w := range g.head.Run.Workloads {
		planned := map[string]map[string]bool{}
		for _, c := range g.head.Run.Plan.Cells {
			if c.Workload == w.Name {
				for flag, v := range c.Flags {
					mark(planned, flag, fmt.Sprint(v))
				}
			}
		}
		for _, flag := range sortedKeys(planned) {
			if len(planned[flag]) < 2 {
				continue
			}
			seen, cells := readBack(g.head.Trials, w.Name, flag)
			if len(seen) == 1 && cells > 1 {
				g.say(result.ExitFailed, "%s: %s was planned with the values %s, the running tasks report %s in all cells", w.Name, flag, strings.Join(sortedKeys(planned[flag]), ", "), sortedKeys(seen)[0])
			}
		}
	}
}

// readBack lists the values of a flag that running tasks report, and how many
// of its planned values have trials that report it.
func readBack(trials []result.Trial, workload, flag string) (seen map[string]bool, values int) {
	seen, planned := map[string]bool{}, map[string]bool{}
	for i := range trials {
		t := &trials[i]
		if t.Workload != workload || t.Outcome != result.OK {
			continue
		}
		if key := optionOf(t.Options, flag); key != "" {
			seen[fmt.Sprint(t.Options[key])] = true
			planned[fmt.Sprint(t.Flags[flag])] = true
		}
	}
	return seen, len(planned)
}

// optionOf finds the option of a flag.
func optionOf(options map[string]any, flag string) string {
	if key := shortNames[flag]; key != "" {
		if _, ok := options[key]; ok {
			return key
		}
		return ""
	}
	if _, ok := options[flag]; ok {
		return flag
	}
	var found []string
	for key := range options {
		name := strings.TrimSuffix(key, ".enabled")
		if strings.HasSuffix(name, "."+flag) {
			found = append(found, key)
		}
	}
	if len(found) != 1 { // none, or it is not clear which
		return ""
	}
	return found[0]
}

func mark(m map[string]map[string]bool, a, b string) {
	if m[a] == nil {
		m[a] = map[string]bool{}
	}
	m[a][b] = true
}
