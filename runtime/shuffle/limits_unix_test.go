//go:build unix

package shuffle

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"benchrun/runtime/buffer"
	"benchrun/runtime/exchange"
)

// The process may open no more files: a reader and a writer fail with that, the
// partition is not lost, and all goes well when others have closed theirs.
//
// Fails if shortage does not know EMFILE, or if newWriter does not abort what it has
// begun.
func TestTooManyOpenFiles(t *testing.T) {
	s := open(t, small(t.TempDir()))
	o := randomOutput(seeded(t), 2, 100, 100)
	id, next := partitionOf("job", 0), partitionOf("job", 1)
	o.make(t, s, id, 2<<10, None)
	func() {
		defer forbidFiles(t)()
		if _, err := read(t, s, id, Range{0, 1}); !errors.Is(err, syscall.EMFILE) || errors.Is(err, exchange.ErrPartitionLost) {
			t.Errorf("a reader says %v", err)
		}
		g := buffer.NewGlobal(256, 64)
		if _, err := s.Create(next, WriterConfig{Subpartitions: 2, Memory: 2 << 10, Pool: g}); !errors.Is(err, syscall.EMFILE) || g.Stats().Pools != 0 {
			t.Errorf("a writer says %v, and leaves %+v", err, g.Stats())
		}
	}()
	o.expect(t, s, id, Range{0, 1})
	o.make(t, s, next, 2<<10, None)
	shut(t, s)
}

// forbidFiles forbids to open any more files, until it is undone.
func forbidFiles(t *testing.T) (undo func()) {
	t.Helper()
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
		t.Skip(err)
	}
	low := old
	low.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Skip(err)
	}
	if f, err := os.Open(os.DevNull); err == nil {
		f.Close()
		t.Error("the limit has no effect")
	}
	return func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old); err != nil {
			t.Fatal(err)
		}
	}
}
