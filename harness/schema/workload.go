package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"benchrun/runtime/options"
	"benchrun/workloads/spec"

	"github.com/invopop/jsonschema"
)

// Patterns of strings with units. Units themselves are left to validate, which
// knows all their spellings.
const (
	durationPattern = `^\s*(0|([0-9]+(\.[0-9]+)?\s*[A-Za-zµμ]+\s*)+)\s*$`
	sizePattern     = `^\s*(0|[0-9]+(\.[0-9]+)?\s*[A-Za-z]+)\s*$`
	ratePattern     = `^\s*[0-9]+(\.[0-9]+)?\s*/\s*[0-9]*(\.[0-9]+)?\s*[A-Za-zµμ]+\s*$`
)

// workload builds the schema of workload files from what spec reads.
func workload() *jsonschema.Schema {
	s := table(spec.TableFile, "")
	s.Definitions = jsonschema.Definitions{}
	set := func(name string, p *jsonschema.Schema) {
		p.Description = property(s, name).Description
		s.Properties.Set(name, p)
	}
	set("run", runTable())
	set("cluster", table(spec.TableCluster, ""))
	set("options", optionTable())
	set("matrix", matrixTable())
	for _, name := range []string{"matrix-exclude", "matrix-include"} {
		cell := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{Type: "array"}}}
		set(name, &jsonschema.Schema{Type: "array", Items: cell})
	}
	job := table(spec.TableWorkload, "")
	s.Definitions["vertex"], s.Definitions["edge"], s.Definitions["step"] = vertex(s.Definitions), table(spec.TableEdge, "An edge joins two vertices."), step()
	list(job, "vertex", "#/$defs/vertex")
	list(job, "edge", "#/$defs/edge")
	set("workload", job)
	scenario := table(spec.TableScenario, "")
	list(scenario, "step", "#/$defs/step")
	set("scenario", scenario)
	limit := &jsonschema.Schema{Type: "string", Pattern: spec.LimitPattern(), Examples: []any{"median(time_to_first_checkpoint_s) < 5 s"}}
	set("thresholds", &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "array", Items: limit}})
	property(s, "name").Pattern = `^[a-z0-9-]{1,100}$`
	return s
}

// table makes the schema of one of the format's tables.
func table(name, description string) *jsonschema.Schema {
	return keys(spec.Keys(name), description, false)
}

// keys makes a table of keys. In the strings of parameters, environment
// variables may stand for the whole or a part.
func keys(list []spec.Key, description string, variables bool) *jsonschema.Schema {
	s := object(description)
	for _, k := range list {
		s.Properties.Set(k.Name, key(k, variables))
		if k.Required {
			require(s, k.Name)
		}
	}
	return s
}

func key(k spec.Key, variables bool) *jsonschema.Schema {
	p := &jsonschema.Schema{Description: k.Help}
	text := func(pattern string) {
		p.Type = "string"
		if pattern != "" && variables {
			pattern = `\$\{|` + pattern
		}
		p.Pattern = pattern
	}
	switch k.Type {
	case spec.ParamRate:
		text(ratePattern)
		p.Examples = []any{"50000/s"}
	case spec.ParamSize:
		text(sizePattern)
		p.Examples = []any{"32 KiB"}
	case spec.ParamDuration:
		text(durationPattern)
		p.Examples = []any{"250ms", "30 s"}
	case spec.ParamString:
		text("")
		if len(k.Words) > 0 && variables {
			p.AnyOf = []*jsonschema.Schema{{Enum: words(k.Words)}, {Pattern: `\$\{`}}
		} else {
			p.Enum = words(k.Words)
		}
	case spec.ParamStrings:
		p.Type, p.Items = "array", &jsonschema.Schema{Type: "string"}
	case spec.ParamCount:
		p.Type, p.Minimum, p.Maximum = "integer", number("0"), number(k.High)
		if k.Low != "" {
			p.Minimum = number(k.Low)
		}
	case spec.ParamFloat:
		p.Type, p.Minimum, p.Maximum = "number", number(k.Low), number(k.High)
	case spec.ParamBool:
		p.Type = "boolean"
	case spec.ParamIndex:
		p.AnyOf = []*jsonschema.Schema{notNegative(&jsonschema.Schema{Type: "integer"}), {Const: "random"}}
	case spec.ParamShare:
		one := func() *jsonschema.Schema {
			return &jsonschema.Schema{Type: "number", Minimum: number(k.Low), Maximum: number(k.High)}
		}
		two := uint64(2)
		p.AnyOf = []*jsonschema.Schema{one(), {Type: "array", Items: one(), MinItems: &two, MaxItems: &two}}
	case spec.ParamTable:
		p.Type = "object"
	case spec.ParamTables:
		p.Type, p.Items = "array", &jsonschema.Schema{Type: "object"}
	}
	p.Default = value(k.Type, k.Default)
	if k.Low != "" && p.Pattern != "" {
		p.Description += "; at least " + k.Low
	}
	if k.High != "" && p.Pattern != "" {
		p.Description += "; at most " + k.High
	}
	return p
}

// value is a default as it stands in a file.
func value(t spec.ParamType, text string) any {
	switch t {
	case spec.ParamCount:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
		return nil
	case spec.ParamFloat:
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return f
		}
		return nil
	case spec.ParamBool:
		return text == "true"
	}
	if text == "" {
		return nil
	}
	return text
}

func list(s *jsonschema.Schema, name, ref string) {
	p := property(s, name)
	p.Items = &jsonschema.Schema{Ref: ref}
}

func runTable() *jsonschema.Schema {
	s := table(spec.TableRun, "")
	p := property(s, "primary")
	names := spec.Metrics()
	p.AnyOf = []*jsonschema.Schema{{Enum: words(names)}, {Pattern: `\.(` + strings.Join(names, "|") + `)$`}}
	return s
}

// optionTable lists every option by its key and aliases. Nested tables, the
// spelling without quotes, are left to validate.
func optionTable() *jsonschema.Schema {
	s := object("")
	s.AdditionalProperties = &jsonschema.Schema{Type: "object"}
	eachOption(func(name string, i *options.Info) { s.Properties.Set(name, option(name, i)) })
	return s
}

func eachOption(f func(name string, i *options.Info)) {
	for _, i := range options.All() {
		for _, name := range append([]string{i.Key}, i.Aliases...) {
			f(name, i)
		}
	}
}

func option(name string, i *options.Info) *jsonschema.Schema {
	p := &jsonschema.Schema{Description: i.Help}
	if name != i.Key {
		p.Description += " (another spelling of " + i.Key + ")"
	}
	if len(i.Requires) > 0 {
		p.Description += "; needs " + strings.Join(i.Requires, " and ")
	}
	p.Default = i.Canonical(i.Default)
	switch i.Type {
	case options.Bool:
		p.Type = "boolean"
	case options.Int, options.Long:
		p.Type = "integer"
	case options.Float:
		p.Type = "number"
	case options.Duration:
		p.Type, p.Pattern = "string", durationPattern
	case options.Size:
		p.Type, p.Pattern = "string", sizePattern
	case options.Enum:
		// Other spellings and other case are read, too: the words complete, they do not check.
		p.Type = "string"
		p.AnyOf = []*jsonschema.Schema{{Enum: words(i.Enum)}, {Pattern: "^[A-Za-z_-]+$"}}
	case options.String:
		p.Type = "string"
		if p.Default == "" {
			p.Default = nil
		}
	}
	return p
}

// matrixTable lists options with lists of values; other axes are paths of the
// file.
func matrixTable() *jsonschema.Schema {
	s := object("")
	s.AdditionalProperties = &jsonschema.Schema{Type: "object"} // the spelling without quotes
	axis := func(item *jsonschema.Schema) *jsonschema.Schema {
		one := uint64(1)
		return &jsonschema.Schema{Type: "array", Items: item, MinItems: &one, UniqueItems: true, Description: item.Description}
	}
	eachOption(func(name string, i *options.Info) {
		p := option(name, i)
		p.Default = nil
		s.Properties.Set(name, axis(p))
	})
	s.PatternProperties = map[string]*jsonschema.Schema{
		`^(cluster|workload|scenario)\.`: axis(&jsonschema.Schema{Description: "values of the key at this path of the file", AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number"}, {Type: "boolean"}}}),
	}
	return s
}

// vertex names the operators that run, each with its own parameters.
func vertex(defs jsonschema.Definitions) *jsonschema.Schema {
	s := table(spec.TableVertex, "A vertex is one operator of the job.")
	names := []string{}
	for _, o := range spec.Operators() {
		names = append(names, o.Name)
		def := o.Name + "-params"
		defs[def] = keys(o.Params, "Parameters of "+o.Name+": "+o.Help, true)
		then := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
		then.Properties.Set("params", &jsonschema.Schema{Ref: "#/$defs/" + def})
		if len(defs[def].Required) > 0 {
			then.Required = []string{"params"}
		}
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: is("operator", o.Name), Then: then})
	}
	property(s, "operator").Enum = words(names)
	property(s, "id").Pattern = `^[^/,= \t\n"']+$`
	return s
}

// is holds if a key has a value.
func is(key string, value any) *jsonschema.Schema {
	s := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{key}}
	s.Properties.Set(key, &jsonschema.Schema{Const: value})
	return s
}

// step either does or waits; each action has its own keys.
func step() *jsonschema.Schema {
	s := table(spec.TableStep, "A step of the scenario: it either does something or waits.")
	always := []string{"name", "repeat"}
	used := append([]string{"do", "wait"}, always...)
	names := []string{}
	for _, a := range spec.Actions() {
		if a.Later != "" {
			continue
		}
		names = append(names, a.Name)
		used = append(used, a.Keys...)
		only := append(append([]string{"do"}, always...), a.Keys...)
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: is("do", a.Name), Then: &jsonschema.Schema{PropertyNames: &jsonschema.Schema{Enum: words(only)}, Description: fmt.Sprintf("%s: %s", a.Name, a.Help)}})
	}
	s.AllOf = append(s.AllOf, &jsonschema.Schema{If: &jsonschema.Schema{Required: []string{"wait"}}, Then: &jsonschema.Schema{PropertyNames: &jsonschema.Schema{Enum: words(append([]string{"wait"}, always...))}}})
	s.OneOf = []*jsonschema.Schema{{Required: []string{"do"}}, {Required: []string{"wait"}}}
	for _, k := range spec.Keys(spec.TableStep) {
		if !slices.Contains(used, k.Name) {
			s.Properties.Delete(k.Name) // of actions to come
		}
	}
	property(s, "do").Enum = words(names)
	property(s, "name").Pattern = `^[A-Za-z0-9_][A-Za-z0-9_-]*$`
	nested := func(name string, t *jsonschema.Schema) {
		t.Description = property(s, name).Description
		s.Properties.Set(name, t)
	}
	nested("wait", table(spec.TableCondition, ""))
	nested("when", table(spec.TableWhen, ""))
	most := spec.Keys(spec.TableWorkload)
	high := most[slices.IndexFunc(most, func(k spec.Key) bool { return k.Name == "max-parallelism" })].High
	nested("parallelism", &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "integer", Minimum: number("1"), Maximum: number(high)}})
	return s
}
