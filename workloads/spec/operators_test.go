package spec

import (
	"testing"

	"benchrun/runtime/options"
	"benchrun/runtime/record"
)

// TestOperators holds the catalogue to its own rules.
func TestOperators(t *testing.T) {
	if MinRecordSize != record.HeaderSize {
		t.Errorf("a record's header has %d bytes, not %d", record.HeaderSize, MinRecordSize)
	}
	for _, o := range Operators() {
		if o.Help == "" {
			t.Errorf("%s has no help", o.Name)
		}
		for _, p := range o.Params {
			if p.Help == "" {
				t.Errorf("%s: %s has no help", o.Name, p.Name)
			}
			if p.Default == "" {
				continue
			}
			var err error
			switch p.Type {
			case ParamSize:
				_, err = options.ParseSize(p.Default)
			case ParamDuration:
				_, err = options.ParseDuration(p.Default)
			case ParamCount:
				if p.count() == 0 && p.Default != "0" {
					t.Errorf("%s: %s: the default %q is no number", o.Name, p.Name, p.Default)
				}
			}
			if err != nil {
				t.Errorf("%s: %s: %v", o.Name, p.Name, err)
			}
		}
	}
}

// TestActions: every key of an action is one that the reader of steps knows.
func TestActions(t *testing.T) {
	known := map[string]bool{"parallelism": true, "vertex": true, "subtask": true, "worker": true, "replace-after": true, "for": true, "kind": true, "when": true}
	for _, a := range Actions() {
		if a.Help == "" {
			t.Errorf("%s has no help", a.Name)
		}
		for _, k := range a.Keys {
			if a.Later == "" && !known[k] {
				t.Errorf("%s: nobody reads the key %s", a.Name, k)
			}
		}
	}
}
