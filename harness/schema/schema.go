package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/invopop/jsonschema"
)

// documents are the schemas, in the order of the documentation.
var documents = []struct {
	name, title string
	make        func() *jsonschema.Schema
}{
	{"workload", "Workload file of benchrun", workload},
	{"run", "run.json of benchrun", run},
	{"trial", "A line of trials.jsonl of benchrun", trial},
	{"event", "A line of events/<trial>.jsonl of benchrun", event},
	{"summary", "summary.json of benchrun", summary},
}

// Names lists the schemas.
func Names() []string {
	names := make([]string, len(documents))
	for i, d := range documents {
		names[i] = d.name
	}
	return names
}

// ID is the $id of a schema.
func ID(name string) string { return "urn:benchrun:schema:1:" + name }

// Document returns a schema as indented JSON.
func Document(name string) ([]byte, error) {
	for _, d := range documents {
		if d.name != name {
			continue
		}
		s := d.make()
		s.Version, s.ID, s.Title = jsonschema.Version, jsonschema.ID(ID(name)), d.title
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return nil, fmt.Errorf("schema %s: %w", name, err)
		}
		return append(b, '\n'), nil
	}
	return nil, fmt.Errorf("there is no schema %q; there are %s", name, strings.Join(Names(), ", "))
}

// words turns strings into the values of an enum.
func words[T ~string](list []T) []any {
	out := make([]any, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

func number(text string) json.Number { return json.Number(text) }

// property returns a property that must be there.
func property(s *jsonschema.Schema, name string) *jsonschema.Schema {
	p, ok := s.Properties.Get(name)
	if !ok {
		panic("schema: no property " + name) // of a type of ours: a test makes all schemas
	}
	return p
}

// object makes a table that has no other keys.
func object(description string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", Description: description, Properties: jsonschema.NewProperties(), AdditionalProperties: jsonschema.FalseSchema}
}

func require(s *jsonschema.Schema, names ...string) {
	for _, n := range names {
		if !slices.Contains(s.Required, n) {
			s.Required = append(s.Required, n)
		}
	}
}
