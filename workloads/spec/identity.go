package spec

import (
	"fmt"
	"math"
)

// checkIdentities refuses jobs in which two records of one stream have the same
// identity: the proof of the output could not tell a copy from a duplicate, and
// join fails on the second of a pair.
func (d *decoder) checkIdentities() {
	for i, v := range d.w.Vertices {
		if v.Operator != "flat-map" || v.Params.FanOut < 2 {
			continue
		}
		s := d.vertices[i]
		if from := d.behind(v.ID, map[string]bool{}); from != "" {
			s.fail("operator", fmt.Sprintf("copies what the window-sum %s emits, and an aggregate has no identity but its key and window: the copies could not be told from duplicates", from),
				"put the flat-map in front of the window-sum")
		}
		if to := d.joinAfter(v.ID, map[string]bool{}); to != "" {
			s.fail("operator", fmt.Sprintf("its copies share key and number, of which the join %s takes one an input", to), "put the flat-map behind the join")
		}
		if product := d.copies(v.ID, map[string]bool{}); product > math.MaxUint32 {
			s.fail("operator", "with the flat-maps in front of it makes more copies of a record than 4294967295", "lower fan-out")
		}
	}
}

// behind finds a window-sum from which records come to a vertex. seen guards
// against cycles, which are told elsewhere.
func (d *decoder) behind(id string, seen map[string]bool) string {
	for _, e := range d.w.Inputs(id) {
		v := d.w.Vertex(e.From)
		if v == nil || seen[v.ID] {
			continue
		}
		seen[v.ID] = true
		if v.Operator == "window-sum" {
			return v.ID
		}
		if found := d.behind(v.ID, seen); found != "" {
			return found
		}
	}
	return ""
}

// joinAfter finds a join to which a vertex's records go, before they become
// aggregates.
func (d *decoder) joinAfter(id string, seen map[string]bool) string {
	for _, e := range d.w.Outputs(id) {
		v := d.w.Vertex(e.To)
		if v == nil || seen[v.ID] || v.Operator == "window-sum" {
			continue
		}
		seen[v.ID] = true
		if v.Operator == "join" {
			return v.ID
		}
		if found := d.joinAfter(v.ID, seen); found != "" {
			return found
		}
	}
	return ""
}

// copies is the largest number of copies of one record behind a vertex.
func (d *decoder) copies(id string, seen map[string]bool) float64 {
	v := d.w.Vertex(id)
	if v == nil || seen[id] {
		return 1
	}
	seen[id] = true
	defer delete(seen, id)
	most := 1.0
	for _, e := range d.w.Inputs(id) {
		most = max(most, d.copies(e.From, seen))
	}
	if v.Operator == "flat-map" {
		most *= float64(v.Params.FanOut)
	}
	return most
}
