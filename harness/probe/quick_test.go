package probe

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"testing/synctest"
)

// TestQuick: on the clock of a bubble no time passes while the CPU works, and
// sleeps are never late.
func TestQuick(t *testing.T) {
	p := Quick()
	if p.ALUMs <= 0 || p.DelayUs < 0 || runtime.GOOS == "linux" && (p.Load == nil || p.CPUBusyElsewhere == nil || *p.CPUBusyElsewhere < 0) {
		t.Errorf("%+v", p)
	}
	synctest.Test(t, func(t *testing.T) {
		if p := Quick(); p.ALUMs != 0 || p.DelayUs != 0 {
			t.Errorf("%+v", p)
		}
	})
}

func TestQueue(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the queue is read on Linux only")
	}
	for _, c := range []struct {
		text    string
		load    float64
		running int
		ok      bool
	}{
		{"0.35 0.44 1.81 3/87 491\n", 0.35, 3, true},
		{"0.35 0.44\n", 0, 0, false},
		{"a b c 3/87 491\n", 0, 0, false},
		{"0.35 0.44 1.81 0/87 491\n", 0, 0, false},
		{"0.35 0.44 1.81 3 491\n", 0, 0, false},
		{"", 0, 0, false},
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, "proc"), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "proc/loadavg"), []byte(c.text), 0o666); err != nil {
			t.Fatal(err)
		}
		load, running, ok := queue(root)
		if ok != c.ok || ok && (load != c.load || running != c.running) {
			t.Errorf("%q: %v, %v, %v", c.text, load, running, ok)
		}
	}
	if _, _, ok := queue(t.TempDir()); ok {
		t.Error("a file that is not there was read")
	}
}

func BenchmarkQuick(b *testing.B) {
	for b.Loop() {
		Quick()
	}
}
