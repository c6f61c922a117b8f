package chart

import (
	"slices"
	"testing"
)

// Names of faults that are close to one another stand side by side, none over another,
// and none is left out.
//
// Fails if a name for which there is no room is dropped, or if the room that names take
// together is forgotten.
func TestNamesOfFaults(t *testing.T) {
	var faults []Mark
	for i, name := range []string{"first", "second", "third", "far"} {
		faults = append(faults, Mark{T: []float64{0, 20, 75, 400}[i], Text: name})
	}
	var got []string
	for _, f := range named(faults, func(v float64) float64 { return v }) {
		got = append(got, f.Text)
	}
	if want := []string{"first, second, third", "far"}; !slices.Equal(got, want) {
		t.Errorf("names %q", got)
	}
	if faults[0].Text != "first" {
		t.Errorf("the fault is now called %q", faults[0].Text)
	}
}
