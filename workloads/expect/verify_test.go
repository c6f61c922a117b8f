package expect

import (
	"testing"

	"pgregory.net/rapid"
)

// see makes what sinks saw out of records, with the hashes of this package.
func see(recs []rec) *Seen {
	s := NewSeen()
	for _, r := range recs {
		s.Record(r.source, r.copy, r.key, r.number, r.value, r.agg)
	}
	return s
}

func expected(recs []rec) *Expected {
	e := newExpected()
	for i := range recs {
		e.add(&recs[i])
	}
	return e
}

func genRecs(t *rapid.T) (recs []rec) {
	for i := range rapid.IntRange(1, 40).Draw(t, "records") {
		recs = append(recs, rec{
			source: rapid.Uint16Range(0, 2).Draw(t, "source"), copy: rapid.Uint32Range(0, 1).Draw(t, "copy"),
			number: uint64(i) * rapid.SampledFrom([]uint64{1, 4096, 1 << 40}).Draw(t, "spread"), key: rapid.Uint64Range(0, 3).Draw(t, "key"),
			value: rapid.Int64Range(0, 99).Draw(t, "value"), agg: rapid.IntRange(0, 3).Draw(t, "aggregate") == 0,
		})
	}
	// Identities must differ.
	type id struct {
		a uint64
		b uint64
		c bool
	}
	seen := map[id]bool{}
	kept := recs[:0]
	for _, r := range recs {
		k := id{uint64(r.source)<<32 | uint64(r.copy), r.number, false}
		if r.agg {
			k = id{r.key, r.number, true}
		}
		if !seen[k] {
			seen[k] = true
			kept = append(kept, r)
		}
	}
	return kept
}

func TestCompareOfTheSameIsOK(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := genRecs(t)
		v := expected(recs).Compare(see(rapid.Permutation(recs).Draw(t, "order")))
		if !v.OK() || v.Expected != int64(len(recs)) || v.Received != int64(len(recs)) {
			t.Fatalf("%+v", v)
		}
	})
}

func TestDroppedRecordIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := genRecs(t)
		i := rapid.IntRange(0, len(recs)-1).Draw(t, "dropped")
		v := expected(recs).Compare(see(append(append([]rec(nil), recs[:i]...), recs[i+1:]...)))
		if v.OK() || v.Lost != 1 || v.Duplicated != 0 || v.Received != v.Expected-1 || v.Digest == v.ExpectedDigest {
			t.Fatalf("%+v", v)
		}
	})
}

func TestDoubledRecordIsDuplicated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := genRecs(t)
		i := rapid.IntRange(0, len(recs)-1).Draw(t, "doubled")
		v := expected(recs).Compare(see(append(append([]rec(nil), recs...), recs[i])))
		if v.OK() || v.Lost != 0 || v.Duplicated != 1 || v.Received != v.Expected+1 || v.Digest == v.ExpectedDigest {
			t.Fatalf("%+v", v)
		}
	})
}

// One lost and one doubled: the count alone is right, all else tells.
func TestExchangedRecordIsLostAndDuplicated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		recs := genRecs(t)
		if len(recs) < 2 {
			t.Skip("one record alone")
		}
		got := append([]rec(nil), recs...)
		i := rapid.IntRange(1, len(recs)-1).Draw(t, "lost")
		got[i] = got[0]
		v := expected(recs).Compare(see(got))
		if v.OK() || v.Received != v.Expected || v.Lost != 1 || v.Duplicated != 1 || v.Digest == v.ExpectedDigest {
			t.Fatalf("%+v", v)
		}
	})
}

// Key and number of two records changed places: the same hash would hide that
// one came twice instead of the other.
//
// Fails if the hash of an identity takes key and number alike.
func TestKeyAndNumberAreToldApart(t *testing.T) {
	for _, agg := range []bool{false, true} {
		recs := []rec{{number: 0, key: 3, agg: agg}, {number: 3, key: 0, agg: agg}, {number: 2, key: 1, agg: agg}, {number: 0, key: 4, agg: agg}, {number: 3, key: 1, agg: agg}}
		for i := range recs {
			for j := range recs {
				got := append([]rec(nil), recs...)
				got[i] = got[j]
				if v := expected(recs).Compare(see(got)); i != j && v.Digest == v.ExpectedDigest {
					t.Errorf("%+v instead of %+v: %+v", recs[j], recs[i], v)
				}
			}
		}
	}
}

func TestUnexplainedRecordCountsAsDuplicated(t *testing.T) {
	recs := []rec{{number: 1}, {number: 2}, {number: 7, key: 1, agg: true}}
	for _, extra := range []rec{{number: 3}, {number: 1, source: 1}, {number: 1, copy: 1}, {number: 1 << 50}, {number: 8, key: 1, agg: true}} {
		v := expected(recs).Compare(see(append(append([]rec(nil), recs...), extra)))
		if v.OK() || v.Lost != 0 || v.Duplicated != 1 {
			t.Errorf("%+v: %+v", extra, v)
		}
	}
}

func TestChangedRecordChangesTheDigest(t *testing.T) {
	recs := []rec{{number: 1, key: 5, value: 9}, {number: 7, key: 1, value: 3, agg: true}}
	for name, change := range map[string]func(r []rec){
		"key":                func(r []rec) { r[0].key++ },
		"final value":        func(r []rec) { r[0].value++ },
		"aggregate's value":  func(r []rec) { r[1].value-- },
		"smaller last value": func(r []rec) { r[0].value-- },
	} {
		got := append([]rec(nil), recs...)
		change(got)
		v := expected(recs).Compare(see(got))
		if v.OK() || v.Lost != 0 || v.Duplicated != 0 || v.Digest == v.ExpectedDigest {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

func TestFinalValuesAreNotComparedWhereOrderDecidesThem(t *testing.T) {
	recs := []rec{{number: 1, key: 5, value: 9}}
	e := expected(recs)
	e.mode = unknown
	if v := e.Compare(see([]rec{{number: 1, key: 5, value: 8}})); !v.OK() {
		t.Errorf("%+v", v)
	}
	// A window of running values: which windows there are is known, not what
	// they sum up to.
	recs = []rec{{key: 1, number: 2, value: 9, agg: true}, {key: 2, number: 2, value: 9, agg: true}}
	e = expected(recs)
	e.mode = unknown
	other := []rec{{key: 1, number: 2, value: 8, agg: true}, {key: 2, number: 2, value: 9, agg: true}}
	if v := e.Compare(see(other)); !v.OK() {
		t.Errorf("%+v", v)
	}
	if v := e.Compare(see(append(other, other[0]))); v.OK() || v.Duplicated != 1 || v.Digest == v.ExpectedDigest {
		t.Errorf("doubled: %+v", v)
	}
	if v := e.Compare(see(other[:1])); v.OK() || v.Lost != 1 || v.Digest == v.ExpectedDigest {
		t.Errorf("dropped: %+v", v)
	}
}

// Behind a keyed operator each record has a running value, aggregates too: the
// largest of a key is its final one, the others depend on order.
func TestFinalValueOfAggregatesIsCompared(t *testing.T) {
	e := expected([]rec{{key: 1, number: 2, agg: true}, {key: 1, number: 3, agg: true}})
	e.mode = final
	e.final(1, 7)
	for _, c := range []struct {
		values [2]int64
		ok     bool
	}{{[2]int64{3, 7}, true}, {[2]int64{7, 4}, true}, {[2]int64{3, 6}, false}, {[2]int64{7, 8}, false}} {
		v := e.Compare(see([]rec{{key: 1, number: 2, agg: true, value: c.values[0]}, {key: 1, number: 3, agg: true, value: c.values[1]}}))
		if v.OK() != c.ok || v.Lost != 0 || v.Duplicated != 0 {
			t.Errorf("%v: %+v", c.values, v)
		}
	}
}

// A sink that counts pages itself and one whose files are read back are
// compared alike.
func TestPagesAddUpAcrossSubtasks(t *testing.T) {
	recs := []rec{{number: 1}, {number: 2}, {number: 5000}}
	s := NewSeen()
	s.Count(2, 0, see(recs[:2]).hash)
	s.Page(Lane{}, 0, &Page{1<<1 | 1<<2})
	s.Count(1, 4, see(recs[2:]).hash)
	s.Page(Lane{}, 1, &Page{14: 1 << (5000 - 4096 - 14*64)})
	s.Value(0, 0)
	if v := expected(recs).Compare(s); !v.OK() || v.OutOfOrder != 4 {
		t.Errorf("%+v", v)
	}
	s.Page(Lane{}, 0, &Page{1 << 1}) // again, in another subtask
	s.Count(1, 0, see(recs[:1]).hash)
	if v := expected(recs).Compare(s); v.OK() || v.Duplicated != 1 {
		t.Errorf("%+v", v)
	}
}
