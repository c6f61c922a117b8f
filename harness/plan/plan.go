package plan

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"

	"benchrun/harness/result"
	"benchrun/workloads/spec"
)

// DefaultBuild is the name of this executable among the builds of a run.
const DefaultBuild = "this"

// Input is what a plan is made from.
type Input struct {
	Files  []*spec.File
	Builds []string // names; empty: DefaultBuild
	Only   string   // filter; empty: all cells
}

// Plan is the list of trials of a run.
type Plan struct {
	Files   []*spec.File // those with at least one cell, in order
	Builds  []string
	Cells   []result.Cell // chosen, by file
	Order   []result.Slot
	Dropped int // cells that the filter left out
}

// New makes the plan of a run. Errors are the user's: two files of one name, a
// filter that is wrong or leaves nothing.
func New(in Input) (*Plan, error) {
	only, err := parseOnly(in.Only)
	if err != nil {
		return nil, err
	}
	p := &Plan{Builds: in.Builds}
	if len(p.Builds) == 0 {
		p.Builds = []string{DefaultBuild}
	}
	names := map[string]string{}
	chosen := map[string][]string{}
	for _, f := range in.Files {
		if other, ok := names[f.Name]; ok {
			return nil, fmt.Errorf("%s and %s are both named %q; names are unique within a run", other, f.Path, f.Name)
		}
		names[f.Name] = f.Path
		for _, c := range f.Cells() {
			if !only.matches(f, c.ID) {
				p.Dropped++
				continue
			}
			chosen[f.Name] = append(chosen[f.Name], c.ID)
			p.Cells = append(p.Cells, result.Cell{Workload: f.Name, Cell: c.ID, Flags: c.Flags})
		}
		if len(chosen[f.Name]) > 0 {
			p.Files = append(p.Files, f)
		}
	}
	if len(p.Cells) == 0 {
		return nil, fmt.Errorf("--only %q leaves no cell of %d; benchrun plan without it lists them", in.Only, p.Dropped)
	}
	p.order(chosen)
	return p, nil
}

// order lays out the blocks.
func (p *Plan) order(chosen map[string][]string) {
	for block := 0; ; block++ {
		more := false
		for _, f := range p.Files {
			if block >= f.Run.Warmup+f.Run.Repeats {
				continue
			}
			more = true
			var slots []result.Slot
			for _, c := range chosen[f.Name] {
				for _, b := range p.Builds {
					slots = append(slots, result.Slot{Workload: f.Name, Cell: c, Build: b, Block: block, Warmup: block < f.Run.Warmup})
				}
			}
			r := Rand(f.Run.Seed, f.Name, block, "order")
			r.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
			p.Order = append(p.Order, slots...)
		}
		if !more {
			return
		}
	}
}

// Result is the plan in the form of run.json.
func (p *Plan) Result() result.Plan {
	return result.Plan{Cells: p.Cells, Trials: len(p.Order), Order: p.Order}
}

// File finds a workload of the plan.
func (p *Plan) File(name string) *spec.File {
	for _, f := range p.Files {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// cells lists the chosen cells of a workload.
func (p *Plan) cells(name string) []string {
	var out []string
	for _, c := range p.Cells {
		if c.Workload == name {
			out = append(out, c.Cell)
		}
	}
	return out
}

// Seed is the number that everything random of one purpose is drawn from. It
// depends on the run's seed, workload, block and purpose only, so that all
// cells and builds of a block draw alike.
func Seed(seed uint64, workload string, block int, purpose string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s/%d/%s", seed, workload, block, purpose)
	return h.Sum64()
}

// Rand is a source of random numbers for one purpose; see Seed.
func Rand(seed uint64, workload string, block int, purpose string) *rand.Rand {
	s := Seed(seed, workload, block, purpose)
	return rand.New(rand.NewPCG(s, s^0x9e3779b97f4a7c15))
}

// Alike lists the groups of chosen cells of a workload that cannot differ.
func (p *Plan) Alike(f *spec.File) [][]string {
	chosen := map[string]bool{}
	for _, c := range p.cells(f.Name) {
		chosen[c] = true
	}
	var out [][]string
	for _, g := range f.Alike() {
		g = slices.DeleteFunc(g, func(c string) bool { return !chosen[c] })
		if len(g) > 1 {
			out = append(out, g)
		}
	}
	return out
}

// Tags lists the tags of all files, sorted.
func (p *Plan) Tags() []string {
	tags := map[string]bool{}
	for _, f := range p.Files {
		for _, t := range f.Tags {
			tags[t] = true
		}
	}
	return slices.Sorted(maps.Keys(tags))
}
