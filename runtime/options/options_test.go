package options

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for _, c := range []struct {
		in   string
		want time.Duration
		err  string // part of the message; empty: no error
	}{
		{"250ms", 250 * time.Millisecond, ""},
		{"30 s", 30 * time.Second, ""},
		{"3 min", 3 * time.Minute, ""},
		{"1m30s", 90 * time.Second, ""},
		{"1 h 30 min", 90 * time.Minute, ""},
		{"1.5h", 90 * time.Minute, ""},
		{"2 days", 48 * time.Hour, ""},
		{"5 seconds", 5 * time.Second, ""},
		{"7 Millis", 7 * time.Millisecond, ""},
		{"200us", 200 * time.Microsecond, ""},
		{"3µs", 3 * time.Microsecond, ""},
		{"0", 0, ""},
		{"0s", 0, ""},
		{" 4 s ", 4 * time.Second, ""},
		{"10", 0, `write "10 ms" or "10 s"`},
		{"", 0, "is empty"},
		{"s", 0, "is no duration"},
		{"-1s", 0, "is no duration"},
		{"1 fortnight", 0, "unknown unit"},
		{"1..2s", 0, "is no number"},
		{"1s30", 0, "no unit"},
		{"999999999 h", 0, "too long"},
	} {
		got, err := ParseDuration(c.in)
		if c.err == "" && (err != nil || got != c.want) {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", c.in, got, err, c.want)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("ParseDuration(%q) = %v, %v; want an error with %q", c.in, got, err, c.err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int64
		err  string
	}{
		{"32 KiB", 32 << 10, ""},
		{"1 MB", 1 << 20, ""},
		{"64mb", 64 << 20, ""},
		{"2g", 2 << 30, ""},
		{"100 bytes", 100, ""},
		{"7 B", 7, ""},
		{"1.5 KiB", 1536, ""},
		{"0", 0, ""},
		{"10", 0, "has no unit"},
		{"ten MB", 0, "is no size"},
		{"1 MB 2 KB", 0, "is no size"},
		{"1 PB", 0, "unknown unit"},
		{"-1 MB", 0, "is no size"},
		{"99999999 TiB", 0, "too large"},
		{"99999999.5 TiB", 0, "too large"},
	} {
		got, err := ParseSize(c.in)
		if c.err == "" && (err != nil || got != c.want) {
			t.Errorf("ParseSize(%q) = %v, %v; want %v", c.in, got, err, c.want)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("ParseSize(%q) = %v, %v; want an error with %q", c.in, got, err, c.err)
		}
	}
}

func TestFormat(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 250 * time.Millisecond: "250ms", 2 * time.Second: "2s", 3 * time.Minute: "3m", 90 * time.Second: "1m30s", 2 * time.Hour: "2h", time.Hour + time.Second: "1h0m1s",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("FormatDuration(%d) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0B", 1000: "1000B", 64 << 20: "64MiB", 1536: "1536B", 3 << 40: "3TiB", 2048 << 40: "2048TiB"} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestFormatRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(10000*time.Hour)).Draw(t, "d"))
		if got, err := ParseDuration(FormatDuration(d)); err != nil || got/time.Microsecond != d/time.Microsecond {
			t.Fatalf("%v became %v, %v", d, got, err)
		}
		n := rapid.Int64Range(0, 1<<50).Draw(t, "n")
		if got, err := ParseSize(FormatSize(n)); err != nil || got != n {
			t.Fatalf("%d became %d, %v", n, got, err)
		}
	})
}

func TestParseReportsAll(t *testing.T) {
	v, errs := Parse(map[string]any{
		"execution.checkpointing.interval":                  "2 s",
		"execution.checkpointing.intervall":                 "2 s",
		"execution.checkpointing.unaligned.enabled":         "true",
		"execution.checkpointing.timeout":                   int64(5),
		"execution.checkpointing.num-retained":              int64(0),
		"execution.checkpointing.during-recovery.enabled":   true,
		"execution.checkpointing.mode":                      "AT_LEAST_ONCE",
		"execution.checkpointing.data-inline-threshold":     "2 MB",
		"restart-strategy.exponential-delay.jitter-factor":  1.5,
		"restart-strategy.type":                             "off",
		"taskmanager.network.memory.buffers-per-channel":    int64(2),
		"taskmanager.network.memory.some-new-thing":         int64(2),
		"heartbeat.timeout":                                 true,
		"heartbeat.interval":                                int64(50000000000000),
		"execution.checkpointing.max-concurrent-checkpoint": int64(1),
	})
	want := []string{
		`"execution.checkpointing.data-inline-threshold": must be between 0B and 1MiB, not 2MiB`,
		`"execution.checkpointing.intervall": is no option that the runtime knows; did you mean "execution.checkpointing.interval"?`,
		`"execution.checkpointing.max-concurrent-checkpoint": is no option that the runtime knows; did you mean "execution.checkpointing.max-concurrent-checkpoints"?`,
		`"execution.checkpointing.mode": must be one of EXACTLY_ONCE`,
		`"execution.checkpointing.num-retained": must be at least 1, not 0`,
		`"execution.checkpointing.timeout": a duration needs a unit: write "5 ms" or "5 s"`,
		`"execution.checkpointing.unaligned.enabled": must be true or false, not the string "true"`,
		`"heartbeat.interval": a duration needs a unit`,
		`"heartbeat.timeout": must be a duration such as "250ms", not true`,
		`"restart-strategy.exponential-delay.jitter-factor": must be between 0 and 1, not 1.5`,
		`"taskmanager.network.memory.buffers-per-channel": is set by the key cluster.buffers-per-channel`,
		`"taskmanager.network.memory.some-new-thing": is set by the key cluster.network-memory`,
	}
	if len(errs) != len(want) {
		t.Errorf("%d errors, want %d", len(errs), len(want))
	}
	for i, err := range errs {
		if i < len(want) && !strings.Contains(err.Error(), want[i]) {
			t.Errorf("error %d: %v\nwant %s", i, err, want[i])
		}
	}
	if got := CheckpointInterval.Get(v); got != 2*time.Second {
		t.Errorf("interval %v", got)
	}
	if !DuringRecovery.Get(v) || !DuringRecovery.IsSet(v) {
		t.Error("D was not read by its other spelling")
	}
	if RestartType.Get(v) != "none" {
		t.Errorf("restart type %q", RestartType.Get(v))
	}
}

// Options of the blocking exchange that a file for another version of Flink, or
// for another codec, may hold: the answer says what to write.
func TestShuffleOptionsOfOthers(t *testing.T) {
	for _, c := range []struct {
		key  string
		raw  any
		want string
	}{
		{"taskmanager.network.compression.codec", "LZO", `must be one of NONE, LZ4, ZSTD, not "LZO"; did you mean "LZ4"?`},
		{"taskmanager.network.compression.codec", false, `must be one of NONE, LZ4, ZSTD, not false`},
		{"taskmanager.network.batch-shuffle.compression.enabled", false, `is no option that the runtime knows; set "taskmanager.network.compression.codec" to "NONE"`},
		{"taskmanager.network.blocking-shuffle.compression.enabled", true, `set "taskmanager.network.compression.codec"`},
		{"taskmanager.network.sort-shuffle.min-buffers", int64(2), "must be at least 8, not 2"},
		{"taskmanager.memory.framework.off-heap.batch-shuffle.size", "64 KiB", "must be at least 1MiB, not 64KiB"},
	} {
		_, errs := Parse(map[string]any{c.key: c.raw})
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) {
			t.Errorf("%s = %v: %v, want %s", c.key, c.raw, errs, c.want)
		}
	}
	for key := range removed {
		if _, ok := Lookup(key); ok {
			t.Errorf("%s is registered and removed", key)
		}
	}
	v, errs := Parse(map[string]any{"taskmanager.network.compression.codec": "zstd"})
	if len(errs) > 0 || ShuffleCodec.Get(v) != "ZSTD" {
		t.Errorf("zstd is read as %q, %v", ShuffleCodec.Get(v), errs)
	}
}

func TestTwoSpellings(t *testing.T) {
	raw := map[string]any{DuringRecovery.Key(): true, DuringRecovery.Info().Aliases[0]: false}
	if _, errs := Parse(raw); len(errs) != 1 || !strings.Contains(errs[0].Error(), "another spelling") {
		t.Errorf("errors %v", errs)
	}
	raw[DuringRecovery.Info().Aliases[0]] = true
	if _, errs := Parse(raw); len(errs) != 0 {
		t.Errorf("errors %v", errs)
	}
}

func TestValuesAreImmutable(t *testing.T) {
	a, _ := Parse(map[string]any{NumRetained.Key(): int64(3)})
	b, errs := a.With(map[string]any{NumRetained.Key(): int64(4)})
	if len(errs) > 0 || NumRetained.Get(a) != 3 || NumRetained.Get(b) != 4 {
		t.Errorf("a %d, b %d, %v", NumRetained.Get(a), NumRetained.Get(b), errs)
	}
	a.Map()[NumRetained.Key()] = int64(9)
	if NumRetained.Get(a) != 3 {
		t.Error("Map shares the set")
	}
	var zero Values
	if BufferTimeout.Get(zero) != 100*time.Millisecond || len(zero.Map()) != 0 {
		t.Error("the zero value is not all defaults")
	}
}

func TestMapIsCanonical(t *testing.T) {
	v, errs := Parse(map[string]any{
		CheckpointInterval.Key(): "2000 ms", DataInlineThreshold.Key(): "64 kb", NumRetained.Key(): int64(2),
		RestartExpMultiplier.Key(): int64(2), WithoutChannelStateCheckpoint.Key(): int64(7), UnalignedEnabled.Key(): true, FailoverStrategy.Key(): "FULL",
	})
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	want := map[string]any{
		CheckpointInterval.Key(): "2s", DataInlineThreshold.Key(): "64KiB", NumRetained.Key(): int64(2),
		RestartExpMultiplier.Key(): 2.0, WithoutChannelStateCheckpoint.Key(): int64(7), UnalignedEnabled.Key(): true, FailoverStrategy.Key(): "full",
	}
	if got := v.Map(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	eff := v.Effective()
	if len(eff) != len(All()) || eff[HeartbeatTimeout.Key()] != "5s" || eff[CheckpointInterval.Key()] != "2s" {
		t.Errorf("effective %v", eff)
	}
	// What was written out reads back to the same set.
	again, errs := Parse(eff)
	if len(errs) > 0 || !reflect.DeepEqual(again.Effective(), eff) {
		t.Errorf("errors %v", errs)
	}
}

func TestRules(t *testing.T) {
	u, r, d := UnalignedEnabled.Key(), RecoverOutputDownstream.Key(), DuringRecovery.Key()
	for _, c := range []struct {
		raw    map[string]any
		broken string // parts of the reasons; empty: none
		inert  string
	}{
		{map[string]any{}, "", ""},
		{map[string]any{u: true, r: true, d: true}, "", ""},
		{map[string]any{u: true, d: true}, "D (" + d + ") requires R (" + r + ")", d},
		{map[string]any{r: true, d: true}, "requires U (" + u + ")", d + " " + r},
		{map[string]any{d: true}, "requires R (" + r + ") and U (" + u + ")", d},
		{map[string]any{u: true, MaxConcurrentCheckpoints.Key(): int64(2)}, "need execution.checkpointing.max-concurrent-checkpoints = 1", ""},
		{map[string]any{MaxConcurrentCheckpoints.Key(): int64(2)}, "", ""},
		{map[string]any{HeartbeatTimeout.Key(): "1s"}, "must be longer", ""},
		{map[string]any{r: true}, "", r},
		{map[string]any{r: false}, "", ""},
		{map[string]any{RestartExpMultiplier.Key(): 3.0}, "", RestartExpMultiplier.Key()},
		{map[string]any{RestartType.Key(): "exponential-delay", RestartExpMultiplier.Key(): 3.0}, "", ""},
		{map[string]any{ClaimMode.Key(): "CLAIM"}, "", ClaimMode.Key()},
		{map[string]any{ClaimMode.Key(): "CLAIM", RecoveryPath.Key(): "/x"}, "", ""},
	} {
		v, errs := Parse(c.raw)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		var reasons []string
		for _, b := range v.Broken() {
			reasons = append(reasons, b.Reason)
		}
		got := strings.Join(reasons, "; ")
		if c.broken == "" && got != "" || !strings.Contains(got, c.broken) {
			t.Errorf("%v: broken %q, want %q", c.raw, got, c.broken)
		}
		if got := strings.Join(v.Inert(), " "); got != c.inert {
			t.Errorf("%v: inert %q, want %q", c.raw, got, c.inert)
		}
	}
}

func TestFingerprint(t *testing.T) {
	parse := func(raw map[string]any) string {
		v, errs := Parse(raw)
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		return v.Fingerprint()
	}
	off := parse(nil)
	if parse(map[string]any{RecoverOutputDownstream.Key(): true}) != off {
		t.Error("R without U differs")
	}
	if parse(map[string]any{NumRetained.Key(): int64(1)}) != off {
		t.Error("a default that is written out differs")
	}
	on := parse(map[string]any{UnalignedEnabled.Key(): true})
	if on == off || parse(map[string]any{UnalignedEnabled.Key(): true, RecoverOutputDownstream.Key(): true}) == on {
		t.Error("options that have an effect do not differ")
	}
}

func TestShort(t *testing.T) {
	for _, c := range []struct {
		key    string
		others []string
		want   string
	}{
		{UnalignedEnabled.Key(), nil, "U"},
		{"execution.checkpointing.during-recovery.enabled", nil, "D"},
		{BatchJobRecovery.Key(), nil, "J"},
		{"pipeline.operator-chaining.enabled", nil, "operator-chaining"},
		{"workload.parallelism", []string{"workload.parallelism"}, "parallelism"},
		{"execution.checkpointing.timeout", []string{"heartbeat.timeout"}, "checkpointing.timeout"},
		{"heartbeat.timeout", []string{"execution.checkpointing.timeout"}, "heartbeat.timeout"},
		{"a.b.c", []string{"x.b.c"}, "a.b.c"},
		{"workload.vertex.x.params.cost", []string{"workload.vertex.y.params.cost"}, "x.params.cost"},
	} {
		if got := Short(c.key, c.others); got != c.want {
			t.Errorf("Short(%q, %v) = %q, want %q", c.key, c.others, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{"recale": "rescale", "rsecale": "rescale", "RESCALE": "rescale", "kill": "", "xyz": ""} {
		if got := Nearest(word, []string{"rescale", "kill-worker", "finish"}); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	if got := NearestKey("checkpointing.aligned-checkpoint-timeout"); got != AlignedTimeout.Key() {
		t.Errorf("nearest key %q", got)
	}
}

// TestRegistry holds the descriptions to their own rules.
func TestRegistry(t *testing.T) {
	for _, i := range All() {
		if i.Help == "" || strings.HasSuffix(i.Help, ".") || strings.Contains(i.Help, "\n") {
			t.Errorf("%s: help %q", i.Key, i.Help)
		}
		if _, err := i.Check(i.Canonical(i.Default)); err != nil {
			t.Errorf("%s: the default is refused: %v", i.Key, err)
		}
		for _, r := range i.Requires {
			if _, ok := Lookup(r); !ok {
				t.Errorf("%s requires the unknown %s", i.Key, r)
			}
		}
		if i.Inert != nil {
			if _, ok := Lookup(i.Inert.Key); !ok {
				t.Errorf("%s depends on the unknown %s", i.Key, i.Inert.Key)
			}
		}
		if _, ok := Covered(i.Key); ok {
			t.Errorf("%s is registered and covered", i.Key)
		}
	}
}

// Fails if a batch option loses the name or the default that results are
// compared by.
func TestBatchOptionsHaveFlinksNamesAndDefaults(t *testing.T) {
	for key, want := range map[string]any{
		"execution.batch.job-recovery.enabled":                                 false,
		"execution.batch.job-recovery.previous-worker.recovery.timeout":        30 * time.Second,
		"execution.batch.job-recovery.snapshot.min-pause":                      3 * time.Minute,
		"job-event.store.write-buffer.size":                                    int64(1 << 20),
		"job-event.store.write-buffer.flush-interval":                          time.Second,
		"taskmanager.registration.timeout":                                     5 * time.Minute,
		"execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task":   int64(16 << 20),
		"execution.batch.adaptive.auto-parallelism.min-parallelism":            1,
		"execution.batch.adaptive.auto-parallelism.max-parallelism":            128,
		"execution.batch.adaptive.auto-parallelism.default-source-parallelism": 0,
		"slot.request.timeout":                                                 5 * time.Minute,
		"execution.batch.speculative.enabled":                                  false,
		"execution.batch.speculative.max-concurrent-executions":                2,
		"execution.batch.speculative.block-slow-node-duration":                 time.Minute,
		"slow-task-detector.execution-time.baseline-ratio":                     0.75,
		"slow-task-detector.execution-time.baseline-multiplier":                1.5,
		"slow-task-detector.execution-time.baseline-lower-bound":               time.Minute,
		"taskmanager.network.compression.codec":                                "LZ4",
		"taskmanager.network.sort-shuffle.min-buffers":                         512,
		"taskmanager.memory.framework.off-heap.batch-shuffle.size":             int64(64 << 20),
	} {
		i, ok := Lookup(key)
		if !ok || i.Default != want {
			t.Errorf("%s: known %v, default %v, not %v", key, ok, i, want)
		}
	}
}
