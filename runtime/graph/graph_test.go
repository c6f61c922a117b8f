package graph

import "testing"

// Both ends of an edge must agree on who talks to whom.
func TestTargetsAndSourcesAgree(t *testing.T) {
	for _, p := range Partitioners() {
		for up := 1; up <= 13; up++ {
			for down := 1; down <= 13; down++ {
				if p == Forward && up != down {
					continue
				}
				for u := range up {
					f, l := Targets(p, up, down, u)
					for d := range down {
						sf, sl := Sources(p, up, down, d)
						if a, b := d >= f && d <= l, u >= sf && u <= sl; a != b {
							t.Fatalf("%s %d->%d: upstream %d has %d: %v; downstream has it: %v", p, up, down, u, d, a, b)
						}
					}
				}
			}
		}
	}
}
