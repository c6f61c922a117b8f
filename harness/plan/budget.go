package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"benchrun/harness/result"
	"benchrun/runtime/options"
)

// cellKey names a cell over all workloads of a run.
type cellKey struct{ workload, cell string }

// Fit keeps of the measured slots of a plan those of the cells that fit into a
// time, all blocks and builds of a cell or none. What is named first is worth
// most: workloads in the order of the command line, cells in that of the
// matrix; a cheaper one further down takes room that a dear one leaves.
// Warm-up slots are kept as they are and cost nothing. cost is what one trial
// takes.
func Fit(cells []result.Cell, order []result.Slot, cost func(result.Slot) time.Duration, budget time.Duration) (kept []result.Slot, left []result.LeftOut, err error) {
	costs := map[cellKey]time.Duration{}
	for _, s := range order {
		if !s.Warmup {
			costs[cellKey{s.Workload, s.Cell}] += cost(s)
		}
	}
	in := map[cellKey]bool{}
	room, least := budget, time.Duration(-1)
	for _, c := range cells {
		k := cellKey{c.Workload, c.Cell}
		need, planned := costs[k]
		if !planned {
			continue
		}
		if least < 0 || need < least {
			least = need
		}
		if need > room {
			left = append(left, result.LeftOut{Workload: c.Workload, Cell: c.Cell, Reason: fmt.Sprintf("it takes about %s, and %s of the budget were left", round(need), round(room))})
			continue
		}
		room -= need
		in[k] = true
	}
	if len(in) == 0 && least >= 0 {
		return nil, nil, fmt.Errorf("no cell fits into the budget: the cheapest takes about %s for all its blocks, and %s are left (without a warm-up block a trial is only estimated); give more time, or fewer repeats", round(least), round(budget))
	}
	kept = slices.DeleteFunc(slices.Clone(order), func(s result.Slot) bool { return !s.Warmup && !in[cellKey{s.Workload, s.Cell}] })
	return kept, left, nil
}

func round(d time.Duration) string { return options.FormatDuration(max(d, 0).Round(time.Second)) }

// More lists the slots of additional blocks for some cells of a run that has
// been measured, shuffled as all blocks are. The blocks of a workload count on
// from its last.
func More(run *result.Run, cells []result.Cell, seed func(workload string) uint64, blocks int) []result.Slot {
	last := map[string]int{}
	for _, s := range run.Plan.Order {
		last[s.Workload] = max(last[s.Workload], s.Block)
	}
	var out []result.Slot
	for k := range blocks {
		for _, w := range run.Workloads {
			block := last[w.Name] + 1 + k
			var slots []result.Slot
			for _, c := range cells {
				if c.Workload != w.Name {
					continue
				}
				for _, b := range slices.Sorted(maps.Keys(run.Builds)) {
					slots = append(slots, result.Slot{Workload: w.Name, Cell: c.Cell, Build: b, Block: block})
				}
			}
			r := Rand(seed(w.Name), w.Name, block, "order")
			r.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
			out = append(out, slots...)
		}
	}
	return out
}
