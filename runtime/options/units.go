package options

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "nano": time.Nanosecond, "nanosecond": time.Nanosecond,
	"us": time.Microsecond, "µs": time.Microsecond, "μs": time.Microsecond, "micro": time.Microsecond, "microsecond": time.Microsecond,
	"ms": time.Millisecond, "milli": time.Millisecond, "millisecond": time.Millisecond,
	"s": time.Second, "sec": time.Second, "second": time.Second,
	"m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

var sizeUnits = map[string]int64{
	"b": 1, "byte": 1,
	"k": 1 << 10, "kb": 1 << 10, "kib": 1 << 10, "kibibyte": 1 << 10,
	"m": 1 << 20, "mb": 1 << 20, "mib": 1 << 20, "mebibyte": 1 << 20,
	"g": 1 << 30, "gb": 1 << 30, "gib": 1 << 30, "gibibyte": 1 << 30,
	"t": 1 << 40, "tb": 1 << 40, "tib": 1 << 40, "tebibyte": 1 << 40,
}

// ParseDuration reads a duration in Go's spelling ("250ms", "1m30s") or
// Flink's ("30 s", "3 min", "1 day"). A number without a unit is refused,
// except "0". Durations are never negative.
func ParseDuration(s string) (time.Duration, error) {
	text := strings.TrimSpace(s)
	if text == "0" {
		return 0, nil
	}
	if text == "" {
		return 0, fmt.Errorf("duration %q is empty; write it as \"250ms\" or \"30 s\"", s)
	}
	var total float64 // nanoseconds; exact for anything a person writes
	for rest := text; rest != ""; {
		number, unit, tail := splitUnit(rest)
		if number == "" {
			return 0, fmt.Errorf("%q is no duration; write it as \"250ms\", \"30 s\" or \"3 min\"", s)
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return 0, fmt.Errorf("%q is no duration: %q is no number", s, number)
		}
		if unit == "" {
			return 0, fmt.Errorf("duration %q has no unit; write \"%s ms\" or \"%s s\"", s, number, number)
		}
		scale, ok := durationUnits[unit]
		if !ok {
			scale, ok = durationUnits[singular(strings.ToLower(unit))]
		}
		if !ok {
			return 0, fmt.Errorf("duration %q has the unknown unit %q; units are ns, us, ms, s, min, h, d", s, unit)
		}
		total += n * float64(scale)
		rest = tail
	}
	if total > math.MaxInt64/2 {
		return 0, fmt.Errorf("duration %q is too long", s)
	}
	return time.Duration(math.Round(total)), nil
}

// ParseSize reads a number of bytes with a unit ("32 KiB", "1 MB", "64mb").
// A number without a unit is refused, except "0".
func ParseSize(s string) (int64, error) {
	text := strings.TrimSpace(s)
	if text == "0" {
		return 0, nil
	}
	number, unit, tail := splitUnit(text)
	if number == "" || tail != "" {
		return 0, fmt.Errorf("%q is no size; write it as \"32 KiB\" or \"64mb\"", s)
	}
	if unit == "" {
		return 0, fmt.Errorf("size %q has no unit; write \"%s B\" or \"%s KiB\"", s, number, number)
	}
	scale, ok := sizeUnits[singular(strings.ToLower(unit))]
	if !ok {
		return 0, fmt.Errorf("size %q has the unknown unit %q; units are B, KiB, MiB, GiB, TiB", s, unit)
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil {
		if n > math.MaxInt64/2/scale {
			return 0, fmt.Errorf("size %q is too large", s)
		}
		return n * scale, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no size: %q is no number", s, number)
	}
	if f*float64(scale) > math.MaxInt64/2 {
		return 0, fmt.Errorf("size %q is too large", s)
	}
	return int64(math.Round(f * float64(scale))), nil
}

// FormatDuration writes a duration in the canonical spelling, without spaces
// and without zero parts: "250ms", "2s", "3m", "1m30s", "0s".
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// FormatSize writes a size in the largest unit that keeps it a whole number,
// without spaces: "64MiB", "1000B", "0B".
func FormatSize(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	i := 0
	for n != 0 && n%1024 == 0 && i < len(units)-1 {
		n /= 1024
		i++
	}
	return strconv.FormatInt(n, 10) + units[i]
}

// splitUnit cuts one "number unit" pair off the front of s.
func splitUnit(s string) (number, unit, rest string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
		i++
	}
	number = s[:i]
	s = strings.TrimLeft(s[i:], " ")
	i = 0
	for i < len(s) && s[i] != ' ' && s[i] != '.' && (s[i] < '0' || s[i] > '9') {
		i++
	}
	return number, s[:i], strings.TrimLeft(s[i:], " ")
}

// singular drops the plural s of a spelled-out unit; "s" and "ms" are none.
func singular(unit string) string {
	if len(unit) > 3 {
		return strings.TrimSuffix(unit, "s")
	}
	return unit
}
