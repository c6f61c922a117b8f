package schema

import (
	"reflect"
	"strings"

	"benchrun/harness/result"
	"benchrun/workloads/spec"

	"github.com/invopop/jsonschema"
)

// Words of the public format that no type of harness/result lists.
var (
	kinds = []string{
		"fault", "job-state", "task-state", "worker-lost", "checkpoint-triggered", "checkpoint-acknowledged", "checkpoint-completed",
		"checkpoint-failed", "checkpoint-declined", "restore-assigned", "restore-read", "restore-filtered", "restore-spilled", "restore-drained",
		"first-output", "caught-up", "partition-kept", "partition-lost", "event-replayed", "master-elected", "host-sample", "throughput",
	}
	states = []string{
		"CREATED", "SCHEDULED", "DEPLOYING", "INITIALIZING", "RUNNING", "FINISHED", "FAILING", "FAILED", "CANCELING", "CANCELLING", "CANCELED",
		"RESTARTING", "SUBMITTED", "RECONCILING", "SUSPENDED", "UNPROTECTED", "PROTECTED", "UNCOMMITTED",
	}
	paths    = []string{"upstream", "downstream", "during", "none", "full", "event-log"}
	verdicts = []string{"faster", "slower", "same", "inconclusive"}
	targets  = []string{"embedded", "process", "flink"}
)

// reflector makes schemas of our types. used collects the descriptions that
// were asked for.
func reflector(used map[string]bool) *jsonschema.Reflector {
	return &jsonschema.Reflector{
		Anonymous:                 true,
		ExpandedStruct:            true,
		AllowAdditionalProperties: true,
		Namer:                     typeName,
		LookupComment: func(t reflect.Type, field string) string {
			key := typeName(t)
			if field != "" {
				key += "." + field
			}
			if used != nil && t.Kind() == reflect.Struct {
				used[key] = true
			}
			return descriptions[key]
		},
		Mapper: func(t reflect.Type) *jsonschema.Schema {
			switch t {
			case reflect.TypeFor[result.Outcome]():
				return &jsonschema.Schema{Type: "string", Enum: words(result.Outcomes())}
			case reflect.TypeFor[result.State]():
				return &jsonschema.Schema{Type: "string", Enum: words([]result.State{result.Running, result.Complete, result.Interrupted})}
			case reflect.TypeFor[result.Better]():
				return &jsonschema.Schema{Type: "string", Enum: words([]result.Better{result.Lower, result.Higher, result.Neutral})}
			}
			return nil
		},
	}
}

// typeName names the line of an event after the event.
func typeName(t reflect.Type) string {
	name := t.Name()
	if name == "eventLine" {
		return "Event"
	}
	return name
}

func of(v any) *jsonschema.Schema { return reflector(nil).Reflect(v) }

func run() *jsonschema.Schema {
	s := of(result.Run{})
	property(s, "schema").Const = result.Schema
	return s
}

func trial() *jsonschema.Schema {
	s := of(result.Trial{})
	property(s, "target").Examples = words(targets)
	property(s, "recovery_path").Enum = words(paths)
	notNegative(property(s, "wall_s"))
	s.Definitions["Metrics"] = metrics()
	refer(s, "metrics")
	fault := s.Definitions["Fault"]
	property(fault, "recovery_path").Enum = words(paths)
	refer(fault, "metrics")
	// Only what went well is a measurement; what did not says why.
	s.If = &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"outcome"}}
	s.If.Properties.Set("outcome", &jsonschema.Schema{Const: string(result.OK)})
	none := uint64(0)
	s.Else = &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"reason"}}
	s.Else.Properties.Set("metrics", &jsonschema.Schema{MaxProperties: &none})
	return s
}

// refer makes a property the table of metrics, with its own description.
func refer(s *jsonschema.Schema, name string) {
	p := property(s, name)
	s.Properties.Set(name, &jsonschema.Schema{Ref: "#/$defs/Metrics", Description: p.Description})
}

// metrics is a table of values by name. A version to come may know more.
func metrics() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: jsonschema.NewProperties(), AdditionalProperties: notNegative(&jsonschema.Schema{Type: "number"})}
	for _, m := range result.Metrics() {
		better := map[result.Better]string{result.Lower: "lower is better", result.Higher: "higher is better", result.Neutral: "neither direction is better"}[m.Better]
		s.Properties.Set(m.Name, notNegative(&jsonschema.Schema{Type: "number", Description: m.Help + " (" + unitName(m.Unit) + "; " + better + ")"}))
	}
	return s
}

func unitName(unit string) string {
	switch unit {
	case "s":
		return "seconds"
	case "B":
		return "bytes"
	case "records/s":
		return "records per second"
	}
	return unit
}

func notNegative(s *jsonschema.Schema) *jsonschema.Schema {
	s.Minimum = number("0")
	return s
}

func event() *jsonschema.Schema {
	s := of(result.Event{})
	property(s, "kind").Enum = words(kinds)
	only := func(state []string, kinds ...string) {
		when := &jsonschema.Schema{Properties: jsonschema.NewProperties(), Required: []string{"kind"}}
		when.Properties.Set("kind", &jsonschema.Schema{Enum: words(kinds)})
		then := &jsonschema.Schema{Properties: jsonschema.NewProperties()}
		then.Properties.Set("state", &jsonschema.Schema{Enum: words(state)})
		s.AllOf = append(s.AllOf, &jsonschema.Schema{If: when, Then: then})
	}
	only(states, "job-state", "task-state")
	var faults []string
	for _, a := range spec.Actions() {
		if a.Fault {
			faults = append(faults, a.Name)
		}
	}
	only(faults, "fault")
	for _, name := range []string{"t_us", "subtask", "attempt", "checkpoint", "bytes", "records", "lag_us"} {
		notNegative(property(s, name))
	}
	return s
}

func summary() *jsonschema.Schema {
	s := of(result.Summary{})
	property(s, "schema").Const = result.Schema
	property(s.Definitions["Pair"], "verdict").Enum = words(verdicts)
	stat := s.Definitions["Stat"]
	var units []string
	for _, m := range result.Metrics() {
		if !strings.Contains(" "+strings.Join(units, " ")+" ", " "+m.Unit+" ") {
			units = append(units, m.Unit)
		}
	}
	property(stat, "unit").Enum = words(units)
	for _, name := range []string{"n", "planned", "failed", "sd"} {
		notNegative(property(stat, name))
	}
	return s
}
