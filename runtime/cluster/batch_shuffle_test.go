package cluster_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"benchrun/runtime/cluster"
	"benchrun/runtime/graph"
	"benchrun/runtime/operator"
	"benchrun/runtime/source"
)

// What the options say is what the files of the tasks have: the codec, and as many
// regions as memory makes. Two tasks write 1 MB each, most of which is a pattern.
//
// Fails if makeBlockingOutputs takes no codec from the options, all the memory of the
// task's share, or the option's alone.
func TestBatchShuffleOptions(t *testing.T) {
	const (
		codec      = "taskmanager.network.compression.codec"
		minBuffers = "taskmanager.network.sort-shuffle.min-buffers"
	)
	for _, c := range []struct {
		name      string
		memory    int64
		options   map[string]any
		codec     byte // its number in the format
		low, high uint32
	}{
		{"defaults", 64 << 20, map[string]any{}, 1, 1, 1},
		{"none", 64 << 20, map[string]any{codec: "NONE"}, 0, 1, 1},
		{"zstd", 64 << 20, map[string]any{codec: "ZSTD"}, 2, 1, 1},
		{"short of memory", 512 << 10, map[string]any{codec: "LZ4"}, 1, 5, 8},
		{"few buffers", 64 << 20, map[string]any{minBuffers: int64(16)}, 1, 20, 25},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			j := (&job{}).sequence("numbers", 2, source.Params{Records: 2000, Splits: 4, RecordSize: 1 << 10}).
				op("slow", "keyed-sum", 2, operator.Params{Cost: int64(10 * time.Millisecond)}).op("out", "verify-sink", 2, operator.Params{}).
				link("numbers", "slow", graph.Hash).link("slow", "out", graph.Rebalance)
			b, log := setup{workers: 2, slots: 1, memory: c.memory, options: c.options, dir: dir}.batch(t, j)
			await(t, log, 0, "the end of the sources", finishedTask("numbers", 2))
			if used := b.Options(); !maps.Equal(used, c.options) {
				t.Errorf("tasks use %v", used)
			}
			files := map[string]int{}
			err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
				if err != nil || !strings.HasPrefix(e.Name(), "numbers") {
					return err
				}
				x, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				switch files[filepath.Ext(name)]++; filepath.Ext(name) {
				case ".data":
					if small := len(x) < 500<<10; x[10] != c.codec || small != (c.codec != 0) {
						t.Errorf("codec %d and %d bytes, want codec %d", x[10], len(x), c.codec)
					}
				case ".index":
					if n := binary.LittleEndian.Uint32(x[len(x)-36:]); n < c.low || n > c.high {
						t.Errorf("%d regions, want %d to %d", n, c.low, c.high)
					}
				}
				return nil
			})
			if err != nil || files[".data"] != 2 || files[".index"] != 2 {
				t.Errorf("files %v: %v", files, err)
			}
			if err := b.Cancel(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A cluster in which no task could write is refused before it starts: else its tasks
// would fail and restart for ever.
func TestBatchTooLittleMemory(t *testing.T) {
	const minBuffers = "taskmanager.network.sort-shuffle.min-buffers"
	for _, c := range []struct {
		memory  int64
		options map[string]any
		want    string // what is said; empty: it runs
	}{
		{2 * 2 * 3 * 4 << 10, nil, ""},
		{2*2*3*4<<10 - 1, nil, `a task of "numbers" needs 3 buffers of 4KiB for each partition that it writes, so a worker needs at least 48KiB; raise cluster.network-memory to at least "48KiB"`},
		{1 << 20, map[string]any{minBuffers: int64(64)}, ""},
		{1 << 20, map[string]any{minBuffers: int64(65)}, "needs 65 buffers of 4KiB for each partition that it writes, so a worker needs at least 1040KiB; raise cluster.network-memory to at least \"1040KiB\", or lower cluster.buffer-size or cluster.slots-per-worker or " + minBuffers},
	} {
		cfg := setup{workers: 1, slots: 2, options: c.options, dir: t.TempDir()}.config(t, simple(100, 1))
		cfg.Batch, cfg.NetworkMemory, cfg.BufferSize = true, c.memory, 4<<10
		started, err := cluster.StartBatch(cfg)
		if err == nil {
			cleanUp(t, started, cfg.Timeline)
		}
		if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, cluster.ErrConfig) || !strings.Contains(fmt.Sprint(err), c.want)) {
			t.Errorf("%d bytes, %v: %v", c.memory, c.options, err)
		}
		if c.want == "" {
			continue
		}
		if _, err := cluster.StartProcesses(t.Context(), cfg, nodes, io.Discard); !errors.Is(err, cluster.ErrConfig) {
			t.Errorf("as processes: %v", err)
		}
	}
}
