package spec

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"benchrun/runtime/options"
)

// Thresholds are the differences that a gate lets pass, of a file such as
// results/baselines/thresholds.toml:
//
//	schema = 1
//	[default]                  # of every workload
//	time_to_first_checkpoint_s = { relative = "10 %", absolute = "50 ms" }
//	[workload.quickstart]      # of this one; an entry replaces the default's whole entry
//	time_to_first_checkpoint_s = { relative = "15 %", absolute = "100 ms" }
//
// It is immutable.
type Thresholds struct {
	Path    string // as it was given
	entries map[tolerated]tolerance
}

// tolerated is what an entry is for; the workload "" is the default.
type tolerated struct{ workload, metric string }

type tolerance struct {
	relative, absolute float64
	source             string
}

// maxRelative bounds a relative threshold: beyond it nothing would ever be slower.
const maxRelative = 1000.0

// LoadThresholds reads a file. If it has problems the error is a Problems with
// all of them; it wraps fs.ErrNotExist if there is no file.
func LoadThresholds(path string) (*Thresholds, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("thresholds: %w", err)
	}
	return ParseThresholds(path, text)
}

// ParseThresholds is LoadThresholds of a text.
func ParseThresholds(path string, text []byte) (*Thresholds, error) {
	src := &source{name: path, text: string(text)}
	r := newReporter(src)
	root, ok := parseTree(src, r)
	if !ok {
		return nil, sorted(r.problems)
	}
	t := &Thresholds{Path: path, entries: map[tolerated]tolerance{}}
	s := r.section(root, "")
	s.schema()
	t.read(r, s.value("default"), "default", "")
	if w := r.section(s.value("workload"), "workload"); w.n != nil {
		for _, name := range w.n.keys {
			if !namePattern.MatchString(name) {
				r.add(w.n.table[name].keyAt.problem(w.full(name), "", "is no name of a workload", "names consist of a-z, 0-9 and -"))
				continue
			}
			t.read(r, w.value(name), w.full(name), name)
		}
	}
	s.close()
	if len(r.problems) > 0 {
		return nil, sorted(r.problems)
	}
	return t, nil
}

func (t *Thresholds) read(r *reporter, n *node, path, workload string) {
	s := r.section(n, path)
	if s.n == nil {
		return
	}
	for _, metric := range s.n.keys {
		v := s.value(metric)
		if !knownMetric(metric) {
			hint := metricHint(metric)
			if slices.ContainsFunc(v.keys, knownMetric) {
				hint = "a metric of a later fault is written in quotes: \"step.metric\""
			}
			r.add(v.keyAt.problem(s.full(metric), "", "unknown metric", hint))
			continue
		}
		if v.form == scalarForm {
			r.add(v.at.problem(s.full(metric), v.show(), "must be a table, not "+v.typeName(), `write { relative = "10 %" }`))
			continue
		}
		e := r.section(v, s.full(metric), Key{Name: "absolute", Low: "0", High: "1e15"})
		if e.n == nil {
			continue
		}
		var x tolerance
		if x.relative = e.percent("relative"); !e.has("relative") {
			e.fail("relative", "is missing", `write relative = "10 %"`)
		}
		x.absolute = e.quantity("absolute", metricQuantity(metric))
		e.close()
		x.source = fmt.Sprintf("%s:%d", t.Path, v.keyAt.problem("", "", "", "").Line)
		t.entries[tolerated{workload, metric}] = x
	}
}

// percent reads "10 %" as 0.1.
func (s *section) percent(key string) float64 {
	v := s.value(key)
	if v == nil {
		return 0
	}
	text, isText := v.scalar.(string)
	switch v.scalar.(type) {
	case string:
	case int64, float64:
		s.fail(key, "a relative threshold needs its unit", fmt.Sprintf(`write it as "%v %%"`, v.scalar))
	default:
		s.fail(key, `must be a percentage such as "10 %", not `+v.typeName(), "")
	}
	if !isText {
		return 0
	}
	m := percentPattern.FindStringSubmatch(text)
	if m == nil {
		s.fail(key, "is no percentage", `write it as "10 %"`)
		return 0
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil || x <= 0 || x > maxRelative {
		s.fail(key, fmt.Sprintf("must be above 0 %% and at most %v %%", maxRelative), "")
		return 0
	}
	return x / 100
}

var percentPattern = regexp.MustCompile(`^\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*$`)

// quantity reads a value with the unit of a metric; what is a plain number in
// the metric is one in the file.
func (s *section) quantity(key string, q ParamType) float64 {
	if !s.has(key) {
		s.value(key)
		return 0
	}
	switch q {
	case ParamDuration:
		return s.duration(key).Seconds()
	case ParamSize:
		return float64(s.size(key))
	case ParamRate:
		return s.rate(key)
	}
	return s.number(key)
}

// Find returns what may differ before a metric of a workload counts as
// changed: a share of the value (0.1: ten percent) and an amount in the
// metric's unit, 0 where the file names none. The entry of the workload goes
// before the default; the metric of a later fault, step.metric, falls back to
// the metric. The source is the entry's place, file:line.
func (t *Thresholds) Find(workload, metric string) (relative, absolute float64, source string, ok bool) {
	names := []string{metric}
	if i := strings.LastIndexByte(metric, '.'); i >= 0 {
		names = append(names, metric[i+1:])
	}
	for _, w := range []string{workload, ""} {
		for _, m := range names {
			if x, found := t.entries[tolerated{w, m}]; found {
				return x.relative, x.absolute, x.source, true
			}
		}
	}
	return 0, 0, "", false
}

// Workloads lists the workloads that have entries of their own, sorted.
func (t *Thresholds) Workloads() []string {
	names := map[string]bool{}
	for k := range t.entries {
		if k.workload != "" {
			names[k.workload] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func metricHint(name string) string {
	if near := options.Nearest(name, metricNames); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "benchrun list metrics names them"
}

// metricQuantity is how values of a metric are written, by the unit at the end
// of its name.
func metricQuantity(name string) ParamType {
	switch {
	case strings.HasSuffix(name, "_per_s"):
		return ParamRate
	case strings.HasSuffix(name, "_s"):
		return ParamDuration
	case strings.HasSuffix(name, "_bytes"):
		return ParamSize
	}
	return ParamFloat
}
