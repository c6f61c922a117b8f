package chart

import (
	"math"
	"strconv"
)

// Number writes a value without its unit, as a person reads it: seconds to the
// millisecond, bytes in the unit that Unit gives for the largest of a column.
func Number(v float64, unit string) string {
	if !finite(v) {
		return "–"
	}
	switch unit {
	case "s":
		switch a := math.Abs(v); {
		case a == 0:
			return "0"
		case a < 0.0005:
			return "<0.001"
		case a < 1:
			return strconv.FormatFloat(v, 'f', 3, 64)
		case a < 10:
			return strconv.FormatFloat(v, 'f', 2, 64)
		case a < 100:
			return strconv.FormatFloat(v, 'f', 1, 64)
		}
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	case "B":
		n, u := binary(v)
		return n + " " + u
	case "records", "records/s", "tasks":
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	}
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a >= 100:
		return group(strconv.FormatFloat(v, 'f', 0, 64))
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 0.01:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// Quantity writes a value with its unit.
func Quantity(v float64, unit string) string {
	n := Number(v, unit)
	switch unit {
	case "B", "ratio", "1", "":
		return n
	}
	return n + " " + unit
}

var binaryUnits = []string{"B", "KiB", "MiB", "GiB", "TiB"}

func binary(v float64) (number, unit string) {
	i := 0
	for math.Abs(v) >= 1024 && i < len(binaryUnits)-1 {
		v /= 1024
		i++
	}
	switch {
	case i == 0 || math.Abs(v) >= 100:
		number = group(strconv.FormatFloat(v, 'f', 0, 64))
	case math.Abs(v) >= 10:
		number = strconv.FormatFloat(v, 'f', 1, 64)
	default:
		number = strconv.FormatFloat(v, 'f', 2, 64)
	}
	return number, binaryUnits[i]
}

// readable divides values by a power of 1024 if they are bytes, so that an
// axis has round numbers, and returns the unit of the result.
func readable(values []float64, unit string) (divisor float64, name string) {
	if unit != "B" {
		if unit == "1" {
			unit = ""
		}
		return 1, unit
	}
	high := 0.0
	for _, v := range values {
		if finite(v) {
			high = max(high, v)
		}
	}
	divisor = 1
	i := 0
	for high/divisor >= 1024 && i < len(binaryUnits)-1 {
		divisor *= 1024
		i++
	}
	return divisor, binaryUnits[i]
}
