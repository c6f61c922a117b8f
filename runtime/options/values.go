package options

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Values is an immutable set of checked values. The zero value holds defaults
// only. Copies are cheap and share the set.
type Values struct {
	set map[string]any // by canonical key, in the option's Go type
}

// Error is one wrong entry of a set.
type Error struct {
	Key     string // as it was written
	Value   any    // as it was written
	Message string // what is wrong, without the key
	Hint    string // the nearest right thing; may be empty
}

func (e *Error) Error() string {
	s := fmt.Sprintf("option %q: %s", e.Key, e.Message)
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Broken is one rule between options that a set does not keep.
type Broken struct {
	Key      string   // the option that is on
	Missing  []string // what it requires and is off
	Conflict string   // or: the option whose value it does not go with
	Reason   string   // a sentence
}

// Parse checks a set of raw values: bool, int64, float64 and string by key.
// All errors are reported at once, each an *Error, ordered by key; Values then
// holds the entries that are right.
func Parse(raw map[string]any) (Values, []error) { return Values{}.With(raw) }

// With returns the set with other entries put over it; see Parse.
func (v Values) With(raw map[string]any) (Values, []error) {
	out := Values{set: maps.Clone(v.set)}
	if out.set == nil {
		out.set = map[string]any{}
	}
	var errs []error
	written := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		fail := func(message, hint string) {
			errs = append(errs, &Error{Key: key, Value: raw[key], Message: message, Hint: hint})
		}
		info, ok := Lookup(key)
		if !ok {
			if c, ok := Covered(key); ok {
				fail("is set by the key "+c+" of the workload file", "remove it here and set "+c)
				continue
			}
			hint := removed[key]
			if n := NearestKey(key); hint == "" && n != "" {
				hint = fmt.Sprintf("did you mean %q?", n)
			}
			fail("is no option that the runtime knows", hint)
			continue
		}
		x, err := info.Check(raw[key])
		if err != nil {
			fail(err.Error(), "")
			continue
		}
		if other, ok := written[info.Key]; ok && out.set[info.Key] != x {
			fail(fmt.Sprintf("is another spelling of %q, which has another value", other), "keep one of them")
			continue
		}
		written[info.Key] = key
		out.set[info.Key] = x
	}
	return out, errs
}

// Map returns the explicitly set options by key, typed and canonical: bool,
// int64, float64, and strings for durations, sizes and words.
func (v Values) Map() map[string]any {
	m := make(map[string]any, len(v.set))
	for k, x := range v.set {
		m[k] = registry.byKey[k].Canonical(x)
	}
	return m
}

// Effective returns every option with its value, defaults included, in the
// form of Map.
func (v Values) Effective() map[string]any {
	m := make(map[string]any, len(registry.all))
	for _, i := range registry.all {
		m[i.Key] = i.Canonical(v.get(i))
	}
	return m
}

// Broken lists the rules between options that the set does not keep.
func (v Values) Broken() []Broken {
	var out []Broken
	for _, i := range registry.all {
		if v.get(i) != any(true) || len(i.Requires) == 0 {
			continue
		}
		var missing []string
		for _, k := range i.Requires {
			if v.get(registry.byKey[k]) != any(true) {
				missing = append(missing, k)
			}
		}
		if len(missing) > 0 {
			out = append(out, Broken{Key: i.Key, Missing: missing,
				Reason: fmt.Sprintf("%s requires %s", named(i.Key), joinNamed(missing))})
		}
	}
	if UnalignedEnabled.Get(v) && MaxConcurrentCheckpoints.Get(v) > 1 {
		out = append(out, Broken{Key: unalignedKey, Conflict: MaxConcurrentCheckpoints.Key(),
			Reason: fmt.Sprintf("unaligned checkpoints need %s = 1", MaxConcurrentCheckpoints.Key())})
	}
	if HeartbeatTimeout.Get(v) <= HeartbeatInterval.Get(v) {
		out = append(out, Broken{Key: HeartbeatTimeout.Key(), Conflict: HeartbeatInterval.Key(),
			Reason: fmt.Sprintf("%s must be longer than %s", HeartbeatTimeout.Key(), HeartbeatInterval.Key())})
	}
	return out
}

// Inert lists the options that are set to something else than their default
// and have no effect in this set, by key.
func (v Values) Inert() []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(v.set)) {
		if i := registry.byKey[k]; v.inert(i) && v.set[k] != i.Default {
			out = append(out, k)
		}
	}
	return out
}

// Fingerprint is equal for two sets that make the runtime behave alike: the
// effective values with those that have no effect put to their defaults.
func (v Values) Fingerprint() string {
	var b strings.Builder
	for _, i := range All() {
		x := v.get(i)
		if v.inert(i) {
			x = i.Default
		}
		fmt.Fprintf(&b, "%s=%v\n", i.Key, i.Canonical(x))
	}
	return b.String()
}

func (v Values) inert(i *Info) bool {
	for _, k := range i.Requires {
		if v.get(registry.byKey[k]) != any(true) {
			return true
		}
	}
	if i.Inert == nil {
		return false
	}
	on := registry.byKey[i.Inert.Key]
	if len(i.Inert.Values) == 0 {
		return v.get(on) == on.Default
	}
	return !slices.Contains(i.Inert.Values, v.get(on))
}

func (v Values) get(i *Info) any {
	if x, ok := v.set[i.Key]; ok {
		return x
	}
	return i.Default
}
