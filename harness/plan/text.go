package plan

import (
	"fmt"
	"io"
	"strings"
	"time"

	"benchrun/runtime/options"
	"benchrun/workloads/spec"
)

// Report is a plan as a document.
type Report struct {
	Workloads []WorkloadReport `json:"workloads"`
	Trials    int              `json:"trials"`
	Order     []string         `json:"order"` // workload/cell@build#block
	Seconds   float64          `json:"estimated_s"`
	AtMost    float64          `json:"at_most_s"`
	DiskBytes int64            `json:"disk_bytes"`
	Dropped   int              `json:"filtered_out"`
}

// WorkloadReport is the part of one workload.
type WorkloadReport struct {
	Name     string           `json:"name"`
	File     string           `json:"file"`
	Warmup   int              `json:"warmup"`
	Repeats  int              `json:"repeats"`
	Seed     uint64           `json:"seed"`
	Cells    []CellReport     `json:"cells"`
	LeftOut  []LeftOut        `json:"left_out,omitempty"`
	Alike    [][]string       `json:"cannot_differ,omitempty"`
	Capacity []CapacityReport `json:"capacity"`
}

// CellReport is one cell.
type CellReport struct {
	Cell    string         `json:"cell"`
	Flags   map[string]any `json:"flags"`
	Trials  int            `json:"trials"`
	Control string         `json:"control,omitempty"` // the rule that it breaks on purpose
}

// LeftOut is a combination that does not run.
type LeftOut struct {
	Cell   string `json:"cell"`
	Reason string `json:"reason"`
}

// CapacityReport is what the buffers hold in the cells named.
type CapacityReport struct {
	Cells         []string       `json:"cells"`
	InFlightBytes int64          `json:"inflight_bytes"`
	Edges         []EdgeCapacity `json:"edges"`
	Buffers       int64          `json:"min_buffers_per_worker"`
}

// EdgeCapacity is what the buffers of one edge hold.
type EdgeCapacity struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Bytes int64  `json:"bytes"`
}

// Report collects what is known about the plan.
func (p *Plan) Report() Report {
	e := p.Estimate()
	r := Report{Trials: len(p.Order), Seconds: e.Total.Seconds(), AtMost: e.AtMost.Seconds(), DiskBytes: e.Disk, Dropped: p.Dropped}
	for _, s := range p.Order {
		build := ""
		if len(p.Builds) > 1 {
			build = "@" + s.Build
		}
		r.Order = append(r.Order, fmt.Sprintf("%s/%s%s#%d", s.Workload, s.Cell, build, s.Block))
	}
	for _, f := range p.Files {
		w := WorkloadReport{Name: f.Name, File: f.Path, Warmup: f.Run.Warmup, Repeats: f.Run.Repeats, Seed: f.Run.Seed, Alike: p.Alike(f)}
		controls := map[string]string{}
		for _, c := range f.Cells() {
			if c.Control {
				controls[c.ID] = c.Reason
			}
		}
		seen := map[string]int{}
		for _, c := range p.Cells {
			if c.Workload != f.Name {
				continue
			}
			w.Cells = append(w.Cells, CellReport{Cell: c.Cell, Flags: c.Flags, Trials: len(p.Builds) * (f.Run.Warmup + f.Run.Repeats), Control: controls[c.Cell]})
			job, err := f.Resolve(c.Cell)
			if err != nil || job.Mode == spec.Batch { // nothing of it is in flight
				continue
			}
			edges, total := job.Capacity()
			buffers, _ := job.NetworkNeed()
			key := fmt.Sprint(edges, buffers)
			if i, ok := seen[key]; ok {
				w.Capacity[i].Cells = append(w.Capacity[i].Cells, c.Cell)
				continue
			}
			seen[key] = len(w.Capacity)
			report := CapacityReport{Cells: []string{c.Cell}, InFlightBytes: total, Buffers: buffers}
			for _, x := range edges {
				report.Edges = append(report.Edges, EdgeCapacity(x))
			}
			w.Capacity = append(w.Capacity, report)
		}
		for _, c := range f.LeftOut() {
			w.LeftOut = append(w.LeftOut, LeftOut{c.ID, c.Reason})
		}
		r.Workloads = append(r.Workloads, w)
	}
	return r
}

// Write prints the plan for a person.
func (p *Plan) Write(out io.Writer) error {
	var b strings.Builder
	r := p.Report()
	for i, w := range r.Workloads {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s (%s): %s × %s + %s = %s, seed %d\n", w.Name, w.File, count(len(w.Cells), "cell"),
			count(w.Repeats, "block"), count(w.Warmup, "warm-up block"), count(sum(w.Cells), "trial"), w.Seed)
		for _, c := range w.Cells {
			fmt.Fprintf(&b, "  %s", c.Cell)
			if c.Control != "" {
				fmt.Fprintf(&b, "   control: %s", c.Control)
			}
			b.WriteByte('\n')
		}
		for _, c := range w.LeftOut {
			fmt.Fprintf(&b, "  left out: %s   %s\n", c.Cell, c.Reason)
		}
		for _, g := range w.Alike {
			fmt.Fprintf(&b, "  cannot differ: %s   (the options between them have no effect there)\n", strings.Join(g, "  "))
		}
		for _, c := range w.Capacity {
			where := ""
			if len(w.Capacity) > 1 {
				where = " in " + strings.Join(c.Cells, " ")
			}
			var edges []string
			for _, e := range c.Edges {
				if e.Bytes == 0 {
					edges = append(edges, fmt.Sprintf("%s -> %s chained", e.From, e.To))
				} else {
					edges = append(edges, fmt.Sprintf("%s -> %s %s", e.From, e.To, megabytes(e.Bytes)))
				}
			}
			fmt.Fprintf(&b, "  buffers hold %s%s: %s; a worker needs at least %s\n", megabytes(c.InFlightBytes), where, strings.Join(edges, ", "), count(int(c.Buffers), "buffer"))
		}
	}
	b.WriteString("\norder:\n")
	p.writeOrder(&b)
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "left out by --only: %s\n", count(r.Dropped, "cell"))
	}
	e := p.Estimate()
	fmt.Fprintf(&b, "%s, about %s (at most %s), about %s of disk\n", count(r.Trials, "trial"), rounded(e.Total), options.FormatDuration(e.AtMost), megabytes(e.Disk))
	_, err := io.WriteString(out, b.String())
	return err
}

// writeOrder prints one line a block; long plans are cut in the middle.
func (p *Plan) writeOrder(b *strings.Builder) {
	type line struct {
		head  string
		cells []string
	}
	var lines []line
	for _, s := range p.Order {
		head := fmt.Sprintf("  %s block %d", s.Workload, s.Block)
		if s.Warmup {
			head += " (warm-up)"
		}
		if len(lines) == 0 || lines[len(lines)-1].head != head {
			lines = append(lines, line{head: head})
		}
		cell := s.Cell
		if len(p.Builds) > 1 {
			cell += "@" + s.Build
		}
		l := &lines[len(lines)-1]
		l.cells = append(l.cells, cell)
	}
	for i, l := range lines {
		if len(lines) > 24 && i >= 12 && i < len(lines)-4 {
			if i == 12 {
				fmt.Fprintf(b, "  ... %d more blocks\n", len(lines)-16)
			}
			continue
		}
		fmt.Fprintf(b, "%s: %s\n", l.head, strings.Join(l.cells, "  "))
	}
}

func sum(cells []CellReport) int {
	n := 0
	for _, c := range cells {
		n += c.Trials
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func megabytes(n int64) string {
	switch f := float64(n); {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%.0f MiB", f/(1<<20))
	default:
		return fmt.Sprintf("%.1f MiB", f/(1<<20))
	}
}

func rounded(d time.Duration) string {
	switch {
	case d > 10*time.Minute:
		d = d.Round(time.Minute)
	case d > 10*time.Second:
		d = d.Round(time.Second)
	default:
		d = d.Round(100 * time.Millisecond)
	}
	return options.FormatDuration(d)
}
