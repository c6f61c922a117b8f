package options

import (
	"fmt"
	"strings"
)

// covered maps keys that a key of the workload file replaces; a key that ends
// in "." covers all that begin with it.
var covered = map[string]string{
	"taskmanager.network.memory.buffers-per-channel":            "cluster.buffers-per-channel",
	"taskmanager.network.memory.floating-buffers-per-gate":      "cluster.floating-buffers-per-gate",
	"taskmanager.network.memory.max-buffers-per-channel":        "cluster.max-buffers-per-channel",
	"taskmanager.network.memory.max-overdraft-buffers-per-gate": "cluster.overdraft-buffers-per-gate",
	"taskmanager.network.memory.":                               "cluster.network-memory",
	"taskmanager.memory.network.":                               "cluster.network-memory",
	"taskmanager.memory.segment-size":                           "cluster.buffer-size",
	"taskmanager.numberOfTaskSlots":                             "cluster.slots-per-worker",
	"state.backend.type":                                        "cluster.state-backend",
	"state.backend":                                             "cluster.state-backend",
	"execution.checkpointing.dir":                               "cluster.storage",
	"execution.checkpointing.savepoint-dir":                     "cluster.storage",
	"execution.checkpointing.storage":                           "cluster.storage",
	"state.checkpoints.dir":                                     "cluster.storage",
	"state.savepoints.dir":                                      "cluster.storage",
	"parallelism.default":                                       "workload.parallelism",
	"pipeline.max-parallelism":                                  "workload.max-parallelism",
	"execution.runtime-mode":                                    "workload.mode",
}

// removed maps keys that Flink once had to what is written instead.
var removed = map[string]string{
	"taskmanager.network.batch-shuffle.compression.enabled":    `set "taskmanager.network.compression.codec" to "NONE" for no compression`,
	"taskmanager.network.blocking-shuffle.compression.enabled": `set "taskmanager.network.compression.codec" to "NONE" for no compression`,
	"taskmanager.network.sort-shuffle.min-parallelism":         "remove it: blocking partitions are always sort-merge files",
	"taskmanager.network.blocking-shuffle.type":                "remove it: blocking partitions are always sort-merge files",
}

// Covered tells which key of the workload file takes the place of an option.
func Covered(key string) (string, bool) {
	if c, ok := covered[key]; ok {
		return c, true
	}
	for prefix, c := range covered {
		if strings.HasSuffix(prefix, ".") && strings.HasPrefix(key, prefix) {
			return c, true
		}
	}
	return "", false
}

// Short is the name of a key in cell ids: the registered one (U, R, D, J),
// else its last segment that is not "enabled", with as many segments in front
// as it takes to differ from every key in others. The key itself may be among
// the others.
func Short(key string, others []string) string {
	if i, ok := Lookup(key); ok {
		if i.Short != "" {
			return i.Short
		}
		key = i.Key
	}
	segments := trimmed(key)
	for n := 1; n < len(segments); n++ {
		name := tail(segments, n)
		unique := true
		for _, o := range others {
			if i, ok := Lookup(o); ok {
				o = i.Key
			}
			if o == key {
				continue
			}
			if tail(trimmed(o), n) == name {
				unique = false
			}
		}
		if unique {
			return name
		}
	}
	return strings.Join(segments, ".")
}

func trimmed(key string) []string {
	segments := strings.Split(key, ".")
	for len(segments) > 1 && segments[len(segments)-1] == "enabled" {
		segments = segments[:len(segments)-1]
	}
	return segments
}

func tail(segments []string, n int) string {
	return strings.Join(segments[max(0, len(segments)-n):], ".")
}

func named(key string) string {
	if i, ok := Lookup(key); ok && i.Short != "" {
		return fmt.Sprintf("%s (%s)", i.Short, key)
	}
	return key
}

func joinNamed(keys []string) string {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = named(k)
	}
	return strings.Join(names, " and ")
}

// NearestKey is the registered key closest to a wrong one, or "".
func NearestKey(key string) string {
	// A right last part under a wrong prefix is nearer than any edit distance tells.
	last := tail(trimmed(key), 1)
	var match []string
	for _, i := range registry.all {
		if tail(trimmed(i.Key), 1) == last {
			match = append(match, i.Key)
		}
	}
	var all []string
	for k := range registry.byKey {
		all = append(all, k)
	}
	if n := Nearest(key, all); n != "" {
		return registry.byKey[n].Key
	}
	if len(match) == 1 {
		return match[0]
	}
	return ""
}

// Nearest returns the candidate with the smallest edit distance to a word, if
// it is close enough to be a likely slip; else "".
func Nearest(word string, candidates []string) string {
	best, bestDistance := "", max(2, len(word)/4)+1
	for _, c := range candidates {
		d := distance(strings.ToLower(word), strings.ToLower(c))
		if d < bestDistance || d == bestDistance && best != "" && c < best {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the edit distance that counts a swap of neighbours as one edit.
func distance(a, b string) int {
	two, one := []int(nil), make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one = one, row
	}
	return one[len(b)]
}
