package spec

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"benchrun/runtime/options"
)

var namePattern = regexp.MustCompile(`^[a-z0-9-]+$`)

// decoder turns a tree, with one cell's values in it, into a Workload. It
// remembers the nodes of vertices, edges and steps for the checks after it.
type decoder struct {
	r    *reporter
	file string
	dir  string
	w    *Workload

	root      *node
	vertices  []*section // of w.Vertices, same order
	edges     []*section
	steps     []*section // of w.Steps; a repeat shares its origin's
	optionsAt map[string]*node

	// Parts of the file with mistakes. Checks that rest on such a part would
	// only tell the same mistake in other words.
	wrong struct {
		mode    bool         // what may stand in the file is not known
		shape   bool         // ids, operators, ends of edges: the graph is not what was meant
		numbers bool         // anything of the cluster or the job: capacity is not known
		options bool         // options are not what was meant
		edges   map[int]bool // edges, by index: their partitioner is not known
	}
}

// mistaken runs a reader and tells whether it found a mistake.
func (d *decoder) mistaken(read func()) bool {
	before := d.r.mistakes
	read()
	return d.r.mistakes > before
}

func (d *decoder) decode(root *node) *Workload {
	d.root = root
	d.w = &Workload{File: d.file, Dir: d.dir}
	s := d.r.section(root, "", tables[TableFile]...)
	s.schema()
	d.w.Name = s.str("name")
	switch {
	case !s.has("name"):
		d.r.add(span{src: root.at.src}.problem("name", "", "is missing", `give the workload a name such as name = "my-job"`))
	case !namePattern.MatchString(d.w.Name):
		if _, ok := root.get("name").scalar.(string); ok {
			s.fail("name", "must consist of a-z, 0-9 and -", "")
		}
	case len(d.w.Name) > 100:
		s.fail("name", "must not be longer than 100 characters", "")
	}
	d.w.Description = s.str("description")
	d.w.Tags = s.strings("tags")
	d.run(s.value("run"))
	d.wrong.edges = map[int]bool{}
	job := d.mistaken(func() { d.workload(s.value("workload")) })
	cluster := d.mistaken(func() { d.cluster(s.value("cluster")) })
	d.wrong.numbers = job || cluster
	d.wrong.options = d.mistaken(func() { d.options(s.value("options")) })
	d.checkOptions()
	s.value("matrix") // read by the matrix
	s.value("matrix-exclude")
	s.value("matrix-include")
	d.scenario(s.value("scenario"))
	d.thresholds(s.value("thresholds"))
	s.close()
	return d.w
}

func (d *decoder) run(n *node) {
	s := d.r.section(n, "run", tables[TableRun]...)
	d.w.Run = Run{
		Repeats:        int(s.integer("repeats")),
		Warmup:         int(s.integer("warmup")),
		Seed:           uint64(s.integer("seed")),
		TrialTimeout:   s.duration("trial-timeout"),
		IncludeInvalid: s.boolean("include-invalid"),
	}
	def := "time_to_first_checkpoint_s"
	if d.root.get("workload").get("mode") != nil && d.root.get("workload").get("mode").scalar == Batch {
		def = "makespan_s"
	}
	d.w.Run.PrimaryGiven = s.has("primary")
	d.w.Run.Primary = s.strOr("primary", def)
	if !knownMetric(d.w.Run.Primary) {
		s.fail("primary", "unknown metric", metricHint(d.w.Run.Primary))
	}
	s.close()
}

func (d *decoder) cluster(n *node) {
	s := d.r.section(n, "cluster", tables[TableCluster]...)
	c := &d.w.Cluster
	c.Target = s.str("target")
	c.Workers = int(s.integer("workers"))
	c.SlotsPerWorker = int(s.integer("slots-per-worker"))
	c.BufferSize = s.size("buffer-size")
	c.NetworkMemory = s.size("network-memory")
	c.BuffersPerChannel = int(s.integer("buffers-per-channel"))
	c.FloatingBuffersPerGate = int(s.integer("floating-buffers-per-gate"))
	c.MaxBuffersPerChannel = int(s.integerOr("max-buffers-per-channel", int64(max(10, c.BuffersPerChannel))))
	c.OverdraftBuffersPerGate = int(s.integer("overdraft-buffers-per-gate"))
	c.StateBackend = s.str("state-backend")
	c.Storage = s.str("storage")
	if c.MaxBuffersPerChannel < c.BuffersPerChannel {
		s.fail("max-buffers-per-channel", fmt.Sprintf("must be at least buffers-per-channel, which is %d", c.BuffersPerChannel), "")
	}
	if c.BuffersPerChannel == 0 && c.FloatingBuffersPerGate == 0 {
		s.fail("floating-buffers-per-gate", "must be at least 1 while buffers-per-channel is 0: nothing could be received", "")
	}
	switch c.Target {
	case "flink":
		s.fail("target", fmt.Sprintf("the target %q comes with a later version", c.Target), `write "embedded"`)
	}
	if c.StateBackend == "lsm" {
		s.fail("state-backend", `the state backend "lsm" comes with a later version`, `write "heap"`)
	}
	d.storage(s)
	s.close()
}

func (d *decoder) storage(s *section) {
	c := &d.w.Cluster
	scheme, rest, found := strings.Cut(c.Storage, "://")
	switch {
	case c.Storage == "":
	case !found:
		s.fail("storage", "must be a URL such as \"file:///data/checkpoints\"", "")
	case scheme == "s3":
		s.fail("storage", "storage in s3:// comes with a later version", `write a file:// URL, or "" for the trial's own folder`)
	case scheme == "mem" && c.Target == "process":
		s.fail("storage", "mem:// is the memory of one process, which others do not see", `write a file:// URL, or "" for the trial's own folder`)
	case scheme == "mem":
	case scheme != "file":
		s.fail("storage", fmt.Sprintf("unknown kind of storage %q", scheme), "file://, mem:// or \"\"")
	case rest == "":
		s.fail("storage", "names no folder", "")
	case !filepath.IsAbs(rest):
		c.Storage = "file://" + filepath.Join(d.dir, rest)
	}
}

// flatten turns nested tables into dotted keys, so that an option may stand
// with or without quotes.
func flatten(n *node, prefix string, into map[string]*node, order *[]string, r *reporter) {
	for _, k := range n.keys {
		v := n.table[k]
		full := k
		if prefix != "" {
			full = prefix + "." + k
		}
		if v.form == tableForm {
			flatten(v, full, into, order, r)
			continue
		}
		if into[full] != nil {
			r.add(v.keyAt.problem(quoteSegment(full), "", "is defined twice", ""))
			continue
		}
		into[full] = v
		*order = append(*order, full)
	}
}

func (d *decoder) options(n *node) {
	d.optionsAt = map[string]*node{}
	if n == nil {
		return
	}
	s := d.r.section(n, "options")
	if s.n == nil {
		return
	}
	var order []string
	flatten(n, "", d.optionsAt, &order, d.r)
	raw := map[string]any{}
	for _, k := range order {
		v := d.optionsAt[k]
		switch {
		case v.form == listForm:
			d.r.add(v.at.problem("options."+quoteSegment(k), v.show(), "must be one value, not a list", "lists of values go under [matrix]"))
		default:
			raw[k] = v.scalar
			if o, ok := v.scalar.(other); ok {
				raw[k] = string(o)
			}
		}
	}
	if p, ok := raw[options.RecoveryPath.Key()].(string); ok && p != "" && !s.zero(d.optionsAt[options.RecoveryPath.Key()], options.RecoveryPath.Key(), p) {
		if p = strings.TrimPrefix(p, "file://"); !strings.Contains(p, "://") {
			p = d.absolute(p)
		}
		raw[options.RecoveryPath.Key()] = p
	}
	values, errs := options.Parse(raw)
	for _, err := range errs {
		e := err.(*options.Error)
		v := d.optionsAt[e.Key]
		at := v.at
		if _, known := options.Lookup(e.Key); !known {
			at = v.keyAt
		}
		d.r.add(at.problem("options."+quoteSegment(e.Key), v.show(), e.Message, e.Hint))
	}
	d.w.Options = values
}

func (d *decoder) absolute(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(d.dir, path)
}

func (d *decoder) workload(n *node) {
	s := d.r.section(n, "workload", tables[TableWorkload]...)
	if n == nil {
		d.r.add(span{src: d.root.at.src}.problem("workload", "", "is missing", "a job needs at least [[workload.vertex]] and [[workload.edge]]"))
	}
	d.wrong.mode = d.mistaken(func() { d.w.Mode = s.str("mode") })
	d.w.Parallelism = int(s.integer("parallelism"))
	d.checkParallelism(s)
	d.w.MaxParallelism = int(s.integer("max-parallelism"))
	if d.w.Parallelism > d.w.MaxParallelism {
		s.fail("parallelism", fmt.Sprintf("must not be above max-parallelism, which is %d", d.w.MaxParallelism), "raise workload.max-parallelism")
	}
	if s.n != nil {
		for _, k := range s.n.keys {
			_, known := lookupKey(s.keys, k)
			d.wrong.shape = d.wrong.shape || !known // "vertexx"
		}
	}
	before := d.r.mistakes
	nodes := s.tables("vertex")
	lists := d.r.mistakes > before
	for i, v := range nodes {
		d.vertex(v, i)
	}
	if n != nil && len(nodes) == 0 && !s.has("vertex") {
		s.fail("vertex", "is missing: the job has no operators", "write [[workload.vertex]]")
	}
	var edges []*node
	lists = d.mistaken(func() { edges = s.tables("edge") }) || lists
	for i, v := range edges {
		d.edge(v, i)
	}
	d.wrong.shape = d.wrong.shape || lists || s.wrong
	s.close()
}

func (d *decoder) vertex(n *node, i int) {
	s := d.r.section(n, fmt.Sprintf("workload.vertex.%d", i+1), tables[TableVertex]...)
	before := d.r.mistakes
	v := Vertex{ID: s.str("id")}
	if v.ID != "" {
		s.path = "workload.vertex." + quoteSegment(v.ID)
	}
	switch {
	case !s.has("id"):
		s.fail("id", "is missing", "")
	case d.r.mistakes > before:
	case v.ID == "":
		s.fail("id", "must not be empty", "")
	case strings.ContainsAny(v.ID, "/,= \t\n\"'"):
		s.fail("id", "must not contain spaces, quotes or any of / , =", "")
	}
	for j, o := range d.w.Vertices {
		if o.ID == v.ID && v.ID != "" {
			first := d.vertices[j].n.get("id").at.problem("", "", "", "")
			s.fail("id", "is used twice", fmt.Sprintf("the first is on line %d", first.Line))
		}
	}
	d.wrong.shape = d.wrong.shape || d.r.mistakes > before
	v.Operator = s.str("operator")
	v.Parallelism = int(s.integerOr("parallelism", int64(d.w.Parallelism)))
	d.checkParallelism(s)
	if v.Parallelism > d.w.MaxParallelism && s.has("parallelism") {
		s.fail("parallelism", fmt.Sprintf("must not be above max-parallelism, which is %d", d.w.MaxParallelism), "raise workload.max-parallelism")
	}
	params := s.value("params")
	op, ok := LookupOperator(v.Operator)
	switch {
	case !s.has("operator"):
		s.fail("operator", "is missing", "operators are "+strings.Join(operatorNames(), ", "))
	case v.Operator == "" && s.n.get("operator").scalar != "":
	case !ok:
		hint := "operators are " + strings.Join(operatorNames(), ", ")
		if near := options.Nearest(v.Operator, operatorNames()); near != "" {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		s.fail("operator", "unknown operator", hint)
	case op.BatchOnly && d.w.Mode == Streaming && !d.wrong.mode:
		s.fail("operator", fmt.Sprintf("the operator %q waits for the end of its input, which a streaming job does not have", op.Name), `set workload.mode = "batch"`)
	default:
		v.Kind = op.Kind
		if !d.mistaken(func() { v.Params = d.params(op, params, s) }) {
			d.checkBounded(v, s)
		}
	}
	s.close()
	d.w.Vertices = append(d.w.Vertices, v)
	d.vertices = append(d.vertices, s)
}

func operatorNames() []string {
	names := make([]string, len(operators))
	for i, o := range operators {
		names[i] = o.Name
	}
	return names
}

func (d *decoder) edge(n *node, i int) {
	s := d.r.section(n, fmt.Sprintf("workload.edge.%d", i+1), tables[TableEdge]...)
	before := d.r.mistakes
	e := Edge{From: s.str("from"), To: s.str("to"), Input: 1}
	if e.From != "" && e.To != "" {
		s.path = fmt.Sprintf("workload.edge.%d (%s -> %s)", i+1, e.From, e.To)
	}
	var ids []string
	for _, v := range d.w.Vertices {
		if v.ID != "" {
			ids = append(ids, v.ID)
		}
	}
	for _, end := range []struct{ key, id string }{{"from", e.From}, {"to", e.To}} {
		switch {
		case !s.has(end.key):
			s.fail(end.key, "is missing", "")
		case d.wrong.shape && options.Nearest(end.id, ids) == "": // it may be the one whose id is wrong
		case end.id != "" && d.w.Vertex(end.id) == nil:
			hint := "vertices are " + strings.Join(ids, ", ")
			if near := options.Nearest(end.id, ids); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			s.fail(end.key, "there is no such vertex", hint)
		}
	}
	d.wrong.shape = d.wrong.shape || d.r.mistakes > before
	// As in Flink: no partitioner means forward where that is possible.
	from, to := d.w.Vertex(e.From), d.w.Vertex(e.To)
	def := "rebalance"
	if from != nil && to != nil && from.Parallelism == to.Parallelism {
		def = "forward"
	}
	d.wrong.edges[i] = d.mistaken(func() { e.Partitioner = s.strOr("partitioner", def) })
	s.close()
	d.w.Edges = append(d.w.Edges, e)
	d.edges = append(d.edges, s)
}

func (d *decoder) thresholds(n *node) {
	if n == nil {
		return
	}
	s := d.r.section(n, "thresholds")
	if s.n == nil {
		return
	}
	for _, cells := range n.keys {
		for i, text := range s.strings(cells) {
			at := n.table[cells].items[min(i, len(n.table[cells].items)-1)].at
			m := thresholdPattern.FindStringSubmatch(strings.TrimSpace(text))
			if m == nil {
				d.r.add(at.problem(s.full(cells), fmt.Sprintf("%q", text), "is no limit", `write it as "median(time_to_first_checkpoint_s) < 5 s"`))
				continue
			}
			if !knownMetric(m[1]) {
				d.r.add(at.problem(s.full(cells), fmt.Sprintf("%q", text), fmt.Sprintf("there is no metric %q", m[1]), metricHint(m[1])))
			}
			d.w.Thresholds = append(d.w.Thresholds, Threshold{Cells: cells, Text: strings.TrimSpace(text)})
		}
	}
}

// vertexIDs lists the ids, sorted.
func (d *decoder) vertexIDs() []string {
	ids := map[string]bool{}
	for _, v := range d.w.Vertices {
		ids[v.ID] = true
	}
	return slices.Sorted(maps.Keys(ids))
}
