package record

import (
	"testing"

	"pgregory.net/rapid"
)

// The vectors of RM-1.
func TestKeyGroupVectors(t *testing.T) {
	for _, c := range []struct {
		hash, murmur int32
		group        int
	}{
		{0, 593689054, 94}, {1, 68075478, 86}, {2, 1085422463, 127}, {42, 1134849565, 29}, {-1, 1982413648, 80}, {12345, 638799361, 1},
	} {
		if m := Murmur(c.hash); m != c.murmur {
			t.Errorf("murmur(%d) = %d, want %d", c.hash, m, c.murmur)
		}
		if c.hash >= 0 {
			if g := KeyGroup(uint64(c.hash), 128); g != c.group {
				t.Errorf("group of %d is %d, want %d", c.hash, g, c.group)
			}
		}
	}
	if g := KeyGroup(0xffffffff, 128); g != 80 { // folds to -1
		t.Errorf("group of hash -1 is %d, want 80", g)
	}
	if HashKey(1<<32|1) != 0 || HashKey(1<<32) != 1 {
		t.Error("a key does not fold as Java folds a long")
	}
}

// The ranges of RM-2.
func TestKeyGroupRangeVectors(t *testing.T) {
	for p, want := range map[int][][2]int{
		3: {{0, 42}, {43, 85}, {86, 127}},
		7: {{0, 18}, {19, 36}, {37, 54}, {55, 73}, {74, 91}, {92, 109}, {110, 127}},
	} {
		for i, w := range want {
			if f, l := KeyGroupRange(128, p, i); f != w[0] || l != w[1] {
				t.Errorf("p=%d subtask %d: %d-%d, want %d-%d", p, i, f, l, w[0], w[1])
			}
		}
	}
}

func TestKeyGroupRangesPartitionAndOwnersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		maxp := rapid.IntRange(1, 2000).Draw(t, "maxParallelism")
		p := rapid.IntRange(1, maxp).Draw(t, "parallelism")
		next := 0
		for i := range p {
			f, l := KeyGroupRange(maxp, p, i)
			if f != next || l < f {
				t.Fatalf("subtask %d owns %d-%d, the one before ended at %d", i, f, l, next-1)
			}
			for g := f; g <= l; g++ {
				if o := GroupOwner(maxp, p, g); o != i {
					t.Fatalf("group %d: owner %d, but in the range of %d", g, o, i)
				}
			}
			next = l + 1
		}
		if next != maxp {
			t.Fatalf("groups end at %d of %d", next, maxp)
		}
		if g := KeyGroup(rapid.Uint64().Draw(t, "key"), maxp); g < 0 || g >= maxp {
			t.Fatalf("group %d of %d", g, maxp)
		}
	})
}

func TestDefaultMaxParallelism(t *testing.T) {
	for p, want := range map[int]int{1: 128, 85: 128, 86: 256, 170: 256, 171: 256, 172: 512, 1000: 2048, 20000: 1 << 15, 32768: 1 << 15} {
		if got := DefaultMaxParallelism(p); got != want {
			t.Errorf("parallelism %d: %d, want %d", p, got, want)
		}
	}
}

func TestMixIsABijectionOnSamples(t *testing.T) {
	seen := map[uint64]uint64{}
	for i := range uint64(1 << 16) {
		m := Mix(i)
		if j, twice := seen[m]; twice {
			t.Fatalf("%d and %d both mix to %d", i, j, m)
		}
		seen[m] = i
	}
}
