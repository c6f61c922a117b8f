package options

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Type is the type of an option's value.
type Type string

// Types of options.
const (
	Bool     Type = "bool"
	Int      Type = "int"
	Long     Type = "long"
	Float    Type = "float"
	Duration Type = "duration"
	Size     Type = "memory size"
	Enum     Type = "enum"
	String   Type = "string"
)

// Info describes one option. It is shared and must not be changed.
type Info struct {
	Key     string
	Short   string   // fixed short name in cell ids; empty: derived from the key
	Aliases []string // other spellings that are read as this key
	Type    Type
	Default any      // bool, int, int64, float64, time.Duration, string; sizes are int64 bytes
	Enum    []string // legal words of an Enum, in canonical spelling
	// Requires lists options that must be on for this one to be on. A set that
	// breaks it is invalid.
	Requires []string
	// Inert tells when the option has no effect: unless the option named by
	// Key has one of the values. The set is legal all the same.
	Inert *Condition
	Help  string // one line

	check func(v any) error // limits; v has the option's Go type
	words map[string]string // Enum: other spellings, lower case, to the canonical word
}

// Condition is "option Key has one of Values".
type Condition struct {
	Key    string
	Values []any
}

// Option is a typed handle of one option.
type Option[T any] struct{ info *Info }

// Get returns the option's value in a set: what was set, else the default.
func (o Option[T]) Get(v Values) T {
	if x, ok := v.set[o.info.Key]; ok {
		return x.(T)
	}
	return o.info.Default.(T)
}

// IsSet tells whether the set holds the option explicitly.
func (o Option[T]) IsSet(v Values) bool {
	_, ok := v.set[o.info.Key]
	return ok
}

// Key is the option's name.
func (o Option[T]) Key() string { return o.info.Key }

// Info describes the option.
func (o Option[T]) Info() *Info { return o.info }

var registry struct {
	all   []*Info
	byKey map[string]*Info // by key and alias
}

func register(i *Info) *Info {
	if registry.byKey == nil {
		registry.byKey = map[string]*Info{}
	}
	for _, k := range append([]string{i.Key}, i.Aliases...) {
		if registry.byKey[k] != nil {
			panic("options: " + k + " is registered twice")
		}
		registry.byKey[k] = i
	}
	registry.all = append(registry.all, i)
	return i
}

// All lists every option, by key.
func All() []*Info {
	all := slices.Clone(registry.all)
	slices.SortFunc(all, func(a, b *Info) int { return strings.Compare(a.Key, b.Key) })
	return all
}

// Lookup finds an option by its key or an alias.
func Lookup(key string) (*Info, bool) {
	i, ok := registry.byKey[key]
	return i, ok
}

// Check converts a value as a workload file holds it (bool, int64, float64,
// string) to the option's Go type and checks its limits.
func (i *Info) Check(raw any) (any, error) {
	v, err := i.convert(raw)
	if err != nil {
		return nil, err
	}
	if i.check != nil {
		if err := i.check(v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

func (i *Info) convert(raw any) (any, error) {
	switch i.Type {
	case Bool:
		if b, ok := raw.(bool); ok {
			return b, nil
		}
		return nil, fmt.Errorf("must be true or false, not %s", describe(raw))
	case Int:
		n, ok := integer(raw)
		if !ok {
			return nil, fmt.Errorf("must be a whole number, not %s", describe(raw))
		}
		if n > math.MaxInt32 || n < math.MinInt32 {
			return nil, fmt.Errorf("%d does not fit in 32 bits", n)
		}
		return int(n), nil
	case Long:
		n, ok := integer(raw)
		if !ok {
			return nil, fmt.Errorf("must be a whole number, not %s", describe(raw))
		}
		return n, nil
	case Float:
		if f, ok := raw.(float64); ok && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f, nil
		}
		if n, ok := integer(raw); ok {
			return float64(n), nil
		}
		return nil, fmt.Errorf("must be a number, not %s", describe(raw))
	case Duration:
		switch x := raw.(type) {
		case time.Duration:
			return x, nil
		case string:
			return ParseDuration(x)
		}
		if n, ok := integer(raw); ok {
			return nil, fmt.Errorf("a duration needs a unit: write \"%d ms\" or \"%d s\"", n, n)
		}
		return nil, fmt.Errorf("must be a duration such as \"250ms\", not %s", describe(raw))
	case Size:
		if s, ok := raw.(string); ok {
			return ParseSize(s)
		}
		if n, ok := integer(raw); ok {
			return nil, fmt.Errorf("a size needs a unit: write \"%d B\" or \"%d KiB\"", n, n)
		}
		return nil, fmt.Errorf("must be a size such as \"32 KiB\", not %s", describe(raw))
	case Enum:
		s, ok := raw.(string)
		if !ok {
			return nil, fmt.Errorf("must be one of %s, not %s", strings.Join(i.Enum, ", "), describe(raw))
		}
		for _, w := range i.Enum {
			if strings.EqualFold(w, s) {
				return w, nil
			}
		}
		if w, ok := i.words[strings.ToLower(s)]; ok {
			return w, nil
		}
		hint := ""
		if n := Nearest(s, i.Enum); n != "" {
			hint = fmt.Sprintf("; did you mean %q?", n)
		}
		return nil, fmt.Errorf("must be one of %s, not %q%s", strings.Join(i.Enum, ", "), s, hint)
	case String:
		if s, ok := raw.(string); ok {
			return s, nil
		}
		return nil, fmt.Errorf("must be a string, not %s", describe(raw))
	}
	return nil, fmt.Errorf("unknown type %s", i.Type)
}

// Canonical converts a checked value to what files and targets show: bool,
// int64, float64, and strings for durations, sizes and words.
func (i *Info) Canonical(v any) any {
	switch x := v.(type) {
	case time.Duration:
		return FormatDuration(x)
	case int:
		return int64(x)
	case int64:
		if i.Type == Size {
			return FormatSize(x)
		}
		return x
	}
	return v
}

// DefaultText is the default as a person reads it.
func (i *Info) DefaultText() string {
	switch {
	case i.Default == "":
		return "none"
	case i.Default == int(math.MaxInt32):
		return "unlimited"
	}
	return fmt.Sprint(i.Canonical(i.Default))
}

func integer(raw any) (int64, bool) {
	switch n := raw.(type) {
	case int64:
		return n, true
	case int:
		return int64(n), true
	case int32:
		return int64(n), true
	case float64: // JSON knows no integers
		if n == math.Trunc(n) && math.Abs(n) < 1<<53 {
			return int64(n), true
		}
	}
	return 0, false
}

func describe(raw any) string {
	switch x := raw.(type) {
	case string:
		return fmt.Sprintf("the string %q", x)
	case bool:
		return fmt.Sprintf("%t", x)
	case nil:
		return "nothing"
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	}
	return fmt.Sprint(raw)
}
