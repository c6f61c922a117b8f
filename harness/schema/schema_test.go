package schema

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"benchrun/harness/result"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"

	"github.com/pelletier/go-toml/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled reads a schema as its users do.
func compiled(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	b, err := Document(name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(ID(name), doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(ID(name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return s.Validate(v)
}

// fromTOML turns a workload file into the values that an editor checks.
func fromTOML(t *testing.T, text []byte) []byte {
	t.Helper()
	var v map[string]any
	if err := toml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestDocuments: every schema is a schema with its name, and comes out alike
// each time.
func TestDocuments(t *testing.T) {
	for _, name := range Names() {
		compiled(t, name)
		a, _ := Document(name)
		b, _ := Document(name)
		if !bytes.Equal(a, b) {
			t.Errorf("%s: two documents", name)
		}
		var head struct {
			Schema string `json:"$schema"`
			ID     string `json:"$id"`
			Title  string `json:"title"`
		}
		if err := json.Unmarshal(a, &head); err != nil || head.ID != ID(name) || head.Title == "" || !strings.Contains(head.Schema, "2020-12") {
			t.Errorf("%s: %+v, %v", name, head, err)
		}
	}
	if _, err := Document("runs"); err == nil || !strings.Contains(err.Error(), "workload, run, trial") {
		t.Errorf("%v", err)
	}
}

// TestB24FieldsSayWhatTheyMean: a field called "ok" once was true when a check
// had failed. Every field has a description, and no description is of a field
// that is gone.
//
// Fails if a line of descriptions is removed or a field of a result is added.
func TestB24FieldsSayWhatTheyMean(t *testing.T) {
	used := map[string]bool{}
	r := reflector(used)
	for _, v := range []any{result.Run{}, result.Trial{}, result.Event{}, result.Summary{}} {
		r.Reflect(v)
	}
	for key := range used {
		_, field, isField := strings.Cut(key, ".")
		if descriptions[key] == "" && isField && field != "" {
			t.Errorf("%s has no description", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(descriptions)) {
		if !used[key] {
			t.Errorf("%s is described and does not exist", key)
		}
	}
}

// TestKeysOfTheContract: what every reader may rely on is required.
//
// Fails if such a field becomes one that is left out when it is empty.
func TestKeysOfTheContract(t *testing.T) {
	for name, want := range map[string]string{
		"run":     "schema run state tool builds command overrides workloads seed plan machine targets started",
		"trial":   "trial workload cell flags build revision block warmup order target outcome started wall_s options",
		"event":   "t_us kind",
		"summary": "schema run workloads",
	} {
		b, err := Document(name)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Required []string }
		if err := json.Unmarshal(b, &doc); err != nil {
			t.Fatal(err)
		}
		for _, k := range strings.Fields(want) {
			if !slices.Contains(doc.Required, k) {
				t.Errorf("%s: %s is not required", name, k)
			}
		}
	}
}

// TestResultsValidate: what the lab writes is what the schemas say, and what it
// never writes is refused.
func TestResultsValidate(t *testing.T) {
	when := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	number := 0.5
	bytes := int64(7)
	run := result.Run{Schema: result.Schema, Run: "r", State: result.Complete, Builds: map[string]result.Build{"this": {Path: "p"}}, Command: []string{"benchrun"}, Overrides: []string{},
		Workloads: []result.Workload{{Name: "w", Primary: "detect_s", File: "w.toml"}}, Plan: result.Plan{Cells: []result.Cell{{Workload: "w", Cell: "default", Flags: map[string]any{}}}, Order: []result.Slot{{Workload: "w"}}, Trials: 1},
		Machine: result.Machine{Load1: &number, Probes: map[string]float64{"alu_ms": 7}}, Targets: map[string]string{"embedded": "1"}, Started: when, Ended: &when}
	good := result.Trial{Trial: "000001", Workload: "w", Cell: "default", Flags: map[string]any{"U": true}, Build: "this", Target: "embedded", Outcome: result.OK, Started: when, WallS: 3,
		Metrics: map[string]float64{"time_to_running_s": 0.5, "metric_to_come": 1}, Faults: []result.Fault{{Name: "rescale", Kind: "rescale", Metrics: map[string]float64{"detect_s": 0}, RecoveryPath: "during"}},
		Correctness: &result.Correctness{}, Options: map[string]any{"a": "b"}, RecoveryPath: "during", Resources: &result.Resources{CPUS: &number, NetBytes: &bytes}, HostBefore: &result.HostProbe{Load: &number}, HostAfter: &result.HostProbe{}}
	failed := good
	failed.Outcome, failed.Reason, failed.Metrics = result.Timeout, "too long", nil
	sum := result.Summary{Schema: result.Schema, Run: "r", Workloads: map[string]result.WorkloadSummary{"w": {
		Cells: map[string]result.CellSummary{"default": {Metrics: map[string]result.Stat{"detect_s": {N: 1, Unit: "s", Better: result.Lower, SD: &number}}}},
		Pairs: map[string]map[string]result.Pair{"default": {"detect_s": {N: 1, Ratio: &number, Verdict: "same"}}}, Derived: map[string]map[string]float64{"default": {"x": 1}}}}}
	event := result.Event{TUs: 5, Kind: "task-state", Vertex: "v", Subtask: 1, Attempt: result.None, State: "RUNNING", Checkpoint: 3, Bytes: result.None, Records: result.None, LagUs: result.None}
	for _, c := range []struct {
		schema string
		value  any
		breaks []string // old => new, each of which makes it invalid
	}{
		{"run", run, []string{`"schema":1 => "schema":2`, `"state":"complete" => "state":"done"`, `"seed":0 => "seed":"0"`, `"order":[ => "sequence":[`, `"started":"2026 => "started":"x`, `"overrides":[] => "overrides":null`}},
		{"trial", good, []string{`"outcome":"ok" => "outcome":"fine"`, `"outcome":"ok" => "outcome":"failed"`, `"wall_s":3 => "wall_s":-3`, `"time_to_running_s":0.5 => "time_to_running_s":-0.5`, `"detect_s":0 => "detect_s":null`, `"recovery_path":"during" => "recovery_path":"sideways"`, `"trial": => "id":`}},
		{"trial", failed, []string{`"reason":"too long", => `, `"options": => "metrics":{"detect_s":0},"options":`}},
		{"event", event, []string{`"kind":"task-state" => "kind":"task"`, `"t_us":5 => "t_us":-5`, `"checkpoint":3 => "checkpoint":-1`, `"state":"RUNNING" => "state":"running"`, `"t_us":5, => `}},
		{"summary", sum, []string{`"unit":"s" => "unit":"sec"`, `"better":"lower" => "better":"less"`, `"verdict":"same" => "verdict":"equal"`, `"n":1 => "n":-1`, `"median":0, => `}},
	} {
		s := compiled(t, c.schema)
		text, err := json.Marshal(c.value)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, text); err != nil {
			t.Errorf("%s: %v", c.schema, err)
		}
		for _, change := range c.breaks {
			old, replacement, _ := strings.Cut(change, " => ")
			if !strings.Contains(string(text), old) {
				t.Errorf("%s: no %s in %s", c.schema, old, text)
				continue
			}
			if err := validate(t, s, []byte(strings.Replace(string(text), old, replacement, 1))); err == nil {
				t.Errorf("%s: %s is valid", c.schema, change)
			}
		}
	}
}

// workloadFiles lists the files of this repository that run.
func workloadFiles(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, root := range []string{"../../configs", "../../cmd/benchrun/samples", "../../workloads/spec/testdata"} {
		err := filepath.WalkDir(filepath.FromSlash(root), func(path string, d fs.DirEntry, err error) error {
			if err == nil && filepath.Ext(path) == ".toml" {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %q", out)
	}
	return out
}

// TestWorkloadFilesValidate: a file that the lab reads is one that editors
// accept.
func TestWorkloadFilesValidate(t *testing.T) {
	s := compiled(t, "workload")
	for _, path := range workloadFiles(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := spec.Load(path, nil); err != nil {
			continue // a base of other tests
		}
		if err := validate(t, s, fromTOML(t, text)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestWrongWorkloadFiles: one mistake after another in a good file; the schema
// and the reader both refuse each.
//
// Fails if a table of the schema allows other keys.
func TestWrongWorkloadFiles(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("../../workloads/spec/testdata/contract.toml"))
	if err != nil {
		t.Fatal(err)
	}
	s := compiled(t, "workload")
	for _, change := range []string{
		`schema = 1 => schema = 2`, `schema = 1 => skema = 1`, `name = "unaligned-rescale" => name = "Unaligned Rescale"`, `repeats = 8 => repeats = "8"`, `repeats = 8 => repeats = 0`, `repeats = 8 => repeat = 8`,
		`trial-timeout = "3m" => trial-timeout = 180`, `trial-timeout = "3m" => trial-timeout = "soon"`, `target = "embedded" => target = "embeded"`, `workers = 2 => workers = 0`,
		`buffer-size = "32 KiB" => buffer-size = 32768`, `"execution.checkpointing.interval" = "2 s" => "execution.checkpointing.interval" = 2`, `"execution.checkpointing.interval" => "execution.checkpointing.intervall"`,
		`mode = "streaming" => mode = "stream"`, `operator = "keyed-sum" => operator = "keyed-summ"`, `rate = "50000/s" => rate = 50000`, `rate = "50000/s" => rates = "50000/s"`, `cost-kind = "wait" => cost-kind = "sleep"`,
		`cost = "200us", => cost = "200us", fan-out = 2,`, `partitioner = "hash" => partitioner = "hashed"`, `do = "rescale" => do = "rescal"`, `checkpoints = 1, => checkpoint = 1,`, `do = "finish" => do = "finish"
wait = { running = true }`, `do = "finish" => do = "finish"
worker = 1`, `parallelism = { slow = 6 } => parallelism = { slow = "6" }`, `from = "numbers" => form = "numbers"`, `primary = "time_to_first_checkpoint_s" => primary = "time_to_first_checkpoint"`,
		`recover-output-on-downstream.enabled" = [false, true] => recover-output-on-downstream.enabled" = []`, `recover-output-on-downstream.enabled" = [false, true] => recover-output-on-downstream.enabled" = ["no"]`,
	} {
		old, replacement, _ := strings.Cut(change, " => ")
		if !strings.Contains(string(text), old) {
			t.Errorf("no %s in the file", old)
			continue
		}
		wrong := []byte(strings.Replace(string(text), old, replacement, 1))
		if _, err := spec.Parse("w.toml", "/", wrong, nil); err == nil {
			t.Errorf("%s: the reader takes it", change)
		}
		if err := validate(t, s, fromTOML(t, wrong)); err == nil {
			t.Errorf("%s: the schema takes it", change)
		}
	}
}

// TestSchemaKnowsEveryKey: the keys of the schema are those of the reader's
// tables, of the registry of options and of the catalogue of operators.
//
// Fails if the schema leaves out a table, an alias of an option or an operator.
func TestSchemaKnowsEveryKey(t *testing.T) {
	s := workload()
	names := func(at string) []string {
		x := s
		for part := range strings.FieldsSeq(at) {
			if d, ok := x.Definitions[part]; ok {
				x = d
				continue
			}
			x = property(x, part)
		}
		var out []string
		for p := x.Properties.Oldest(); p != nil; p = p.Next() {
			out = append(out, p.Key)
		}
		return out
	}
	of := func(list []spec.Key) []string {
		var out []string
		for _, k := range list {
			out = append(out, k.Name)
		}
		return out
	}
	var steps []string
	for _, k := range of(spec.Keys(spec.TableStep)) {
		base := slices.Contains([]string{"name", "repeat", "do", "wait"}, k)
		if base || slices.ContainsFunc(spec.Actions(), func(a spec.Action) bool { return a.Later == "" && slices.Contains(a.Keys, k) }) {
			steps = append(steps, k)
		}
	}
	var opts []string
	for _, i := range options.All() {
		opts = append(append(opts, i.Key), i.Aliases...)
	}
	want := map[string][]string{
		"": of(spec.Keys(spec.TableFile)), "run": of(spec.Keys(spec.TableRun)), "cluster": of(spec.Keys(spec.TableCluster)), "workload": of(spec.Keys(spec.TableWorkload)),
		"vertex": of(spec.Keys(spec.TableVertex)), "edge": of(spec.Keys(spec.TableEdge)), "scenario": of(spec.Keys(spec.TableScenario)), "step": steps,
		"step wait": of(spec.Keys(spec.TableCondition)), "step when": of(spec.Keys(spec.TableWhen)), "options": opts, "matrix": opts,
	}
	for _, o := range spec.Operators() {
		want[o.Name+"-params"] = of(o.Params)
	}
	for at, keys := range want {
		if got := names(at); !reflect.DeepEqual(got, keys) {
			t.Errorf("%q has %q, want %q", at, got, keys)
		}
	}
}

// TestDefaultsOfOptions: the value that an editor puts in is one that the
// registry takes.
func TestDefaultsOfOptions(t *testing.T) {
	s := compiled(t, "workload")
	for _, i := range options.All() {
		v := i.Canonical(i.Default)
		if v == "" {
			continue
		}
		if _, err := i.Check(v); err != nil {
			t.Errorf("%s: %v", i.Key, err)
		}
		doc, err := json.Marshal(map[string]any{"schema": 1, "name": "w", "workload": map[string]any{"vertex": []any{}}, "options": map[string]any{i.Key: v}})
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, doc); err != nil {
			t.Errorf("%s: %v", i.Key, err)
		}
	}
}
