package spec

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"benchrun/runtime/options"
	"benchrun/runtime/record"
)

// TestOperators holds the catalogue to its own rules.
func TestOperators(t *testing.T) {
	if MinRecordSize != record.HeaderSize {
		t.Errorf("a record's header has %d bytes, not %d", record.HeaderSize, MinRecordSize)
	}
	sequence, _ := LookupOperator("sequence")
	if size, _ := lookupKey(sequence.Params, "record-size"); size.bytes(size.Low, 0) != MinRecordSize {
		t.Errorf("the smallest record-size is %s, not %d B", size.Low, MinRecordSize)
	}
	wait, _ := lookupKey(tables[TableCondition], "timeout")
	when, _ := lookupKey(tables[TableWhen], "timeout")
	if wait.length(wait.Default, 0) != DefaultWaitTimeout || when.length(when.Default, 0) != DefaultWhenTimeout {
		t.Errorf("default time-outs %s and %s", wait.Default, when.Default)
	}
	for _, o := range Operators() {
		if o.Help == "" {
			t.Errorf("%s has no help", o.Name)
		}
		for _, p := range o.Params {
			checkKey(t, o.Name, p)
		}
	}
	for _, table := range Tables() {
		for _, k := range Keys(table) {
			checkKey(t, table, k)
		}
	}
}

// checkKey holds the texts of a key to its type.
func checkKey(t *testing.T, where string, k Key) {
	t.Helper()
	if k.Help == "" || k.Name == "" {
		t.Errorf("%s: %q has no help", where, k.Name)
	}
	for _, text := range []string{k.Default, k.Low, k.High} {
		if text == "" {
			continue
		}
		var err error
		switch k.Type {
		case ParamSize:
			_, err = options.ParseSize(text)
		case ParamDuration:
			_, err = options.ParseDuration(text)
		case ParamCount:
			_, err = strconv.ParseInt(text, 10, 64)
		case ParamFloat:
			_, err = strconv.ParseFloat(text, 64)
		case ParamBool:
			_, err = strconv.ParseBool(text)
		case ParamString:
			if len(k.Words) > 0 && !slices.Contains(k.Words, text) {
				t.Errorf("%s: %s: the default %q is no word of it", where, k.Name, text)
			}
		}
		if err != nil {
			t.Errorf("%s: %s: %v", where, k.Name, err)
		}
	}
}

// TestTablesAreRead: the reader asks for the keys of the tables, for all of
// them and for no others.
//
// Fails if a key is read that no table has, or a table has one that nobody reads.
func TestTablesAreRead(t *testing.T) {
	f, err := Load("testdata/contract.toml", nil)
	if err != nil {
		t.Fatal(err)
	}
	r := newReporter(nil)
	asked := map[string]map[string]bool{}
	r.asked = func(s *section) {
		table := tableOf(s.path)
		if asked[table] == nil {
			asked[table] = map[string]bool{}
		}
		for _, k := range s.known {
			asked[table][k] = true
		}
	}
	text := strings.Replace(string(f.Text), `do = "rescale"`, `do = "rescale"
when = { during-recovery = true }`, 1)
	root, _ := parseTree(&source{text: text}, r)
	d := &decoder{r: r, dir: "/"}
	d.decode(root)
	for _, a := range Actions() {
		if a.Later != "" {
			for _, k := range a.Keys {
				asked[TableStep][k] = true // their reader comes with them
			}
		}
	}
	for _, a := range Actions() {
		s := r.section(&node{form: tableForm, table: map[string]*node{"do": {scalar: a.Name}}}, "scenario.step.x", tables[TableStep]...)
		d.do(s)
		s.close()
	}
	for _, table := range Tables() {
		var want []string
		for _, k := range Keys(table) {
			want = append(want, k.Name)
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(asked[table])); !slices.Equal(got, want) {
			t.Errorf("%q: asked for %q, the table has %q", table, got, want)
		}
	}
}

// tableOf is the table that a section's path belongs to.
func tableOf(path string) string {
	parts := strings.Split(path, ".")
	switch {
	case len(parts) >= 3 && parts[0] == "scenario" && parts[len(parts)-1] == "wait":
		return TableCondition
	case len(parts) >= 3 && parts[0] == "scenario" && parts[len(parts)-1] == "when":
		return TableWhen
	case len(parts) >= 4:
		return path // parameters
	case len(parts) == 3:
		return strings.Join(parts[:2], ".")
	}
	return path
}

// TestActions: every key of an action is one that the reader of steps knows.
func TestActions(t *testing.T) {
	for _, a := range Actions() {
		if a.Help == "" {
			t.Errorf("%s has no help", a.Name)
		}
		for _, k := range a.Keys {
			if _, ok := lookupKey(tables[TableStep], k); !ok {
				t.Errorf("%s: steps have no key %s", a.Name, k)
			}
		}
	}
}
