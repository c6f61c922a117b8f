package embedded

import (
	"fmt"

	"benchrun/harness/target"
	"benchrun/runtime/control"
	"benchrun/runtime/operator"
	"benchrun/runtime/record"
	"benchrun/runtime/source"
	"benchrun/runtime/task"
	"benchrun/workloads/expect"
	"benchrun/workloads/spec"
)

// verify holds what the sinks reported against the model.
func verify(w *spec.Workload, reports []control.Report) (*target.Output, error) {
	proving := 0
	for _, v := range w.Vertices {
		if op, _ := spec.LookupOperator(v.Operator); op.Proves {
			proving++
		}
	}
	if proving == 0 {
		return &target.Output{}, nil
	}
	positions, err := positions(w, reports)
	if err != nil {
		return nil, err
	}
	expected, err := expect.Compute(w, positions)
	if err != nil {
		return nil, fmt.Errorf("expected output: %w", err)
	}
	seen := map[string]*expect.Seen{}
	for id := range expected {
		seen[id] = expect.NewSeen()
	}
	files := map[string]bool{} // subtasks of a file sink share a folder
	for _, r := range reports {
		s := seen[r.Operator]
		if s == nil {
			continue
		}
		switch x := r.Data.(type) {
		case *operator.SinkReport:
			add(s, x)
		case *operator.FileReport:
			if files[r.Operator] {
				continue
			}
			files[r.Operator] = true
			if err := operator.ReadFiles(x, func(r *record.Record) error {
				s.Record(r.Source, r.Copy, r.Key, r.Number, r.Value, r.Flags&record.FlagAggregate != 0)
				return nil
			}); err != nil {
				return nil, err
			}
		}
	}
	out := &target.Output{Proved: true}
	for _, v := range w.Vertices { // in file order, so that digests of several sinks join the same way
		e := expected[v.ID]
		if e == nil {
			continue
		}
		x := e.Compare(seen[v.ID])
		out.Expected += x.Expected
		out.Received += x.Received
		out.Lost += x.Lost
		out.Duplicated += x.Duplicated
		out.OutOfOrder += x.OutOfOrder
		if out.Digest != "" {
			out.Digest += "+"
			out.ExpectedDigest += "+"
		}
		out.Digest += x.Digest
		out.ExpectedDigest += x.ExpectedDigest
	}
	return out, nil
}

// add sums up one subtask of a verifying sink.
func add(s *expect.Seen, x *operator.SinkReport) {
	s.Count(x.Arrived, x.Disorder, x.Identity)
	for _, l := range x.Lanes {
		for index, p := range l.Pages {
			page := expect.Page(*p)
			s.Page(expect.Lane{Source: l.Source, Copy: l.Copy}, index, &page)
		}
	}
	for k, v := range x.Finals {
		s.Value(k, v)
	}
	for _, a := range x.Aggregates {
		s.Aggregate(a.Key, a.Number, a.Value)
	}
}

// positions are where the sources stood. A split that two attempts reported,
// because the first had finished before a failure, stands where it stood last.
func positions(w *spec.Workload, reports []control.Report) (map[string][]expect.Position, error) {
	out := map[string][]expect.Position{}
	at := map[string]map[int]int{}
	for _, r := range reports {
		x, ok := r.Data.(*task.SourceReport)
		if !ok {
			continue
		}
		lines := false
		for _, v := range w.Vertices {
			lines = lines || v.ID == r.Operator && v.Operator == source.Lines
		}
		if at[r.Operator] == nil {
			at[r.Operator] = map[int]int{}
		}
		for _, b := range x.Splits {
			p, err := position(b, lines)
			if err != nil {
				return nil, fmt.Errorf("source %s: %w", r.Operator, err)
			}
			list := out[r.Operator]
			i, twice := at[r.Operator][p.Split]
			switch {
			case !twice:
				at[r.Operator][p.Split] = len(list)
				out[r.Operator] = append(list, p)
			case p.Pass > list[i].Pass || p.Pass == list[i].Pass && p.Emitted > list[i].Emitted:
				list[i] = p
			}
		}
	}
	for id, list := range out {
		for i := range list {
			list[i].Files = len(list)
		}
		out[id] = list
	}
	return out, nil
}

func position(b []byte, lines bool) (expect.Position, error) {
	if !lines {
		i, k, err := source.ReadSequenceSplit(b)
		return expect.Position{Split: i, Emitted: k}, err
	}
	p, err := source.ReadLineSplit(b)
	return expect.Position{Split: p.Index, Path: p.Path, Pass: p.Pass, Emitted: uint64(p.Lines)}, err
}
