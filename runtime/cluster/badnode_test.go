package cluster_test

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"benchrun/runtime/cluster"
)

// Processes of another build are refused, and the run says which two builds met
// and what to do. A build is an executable: a copy that was made later is another
// one.
//
// Fails if the build has no part in the handshake, or if a process's last words
// do not reach who started it.
func TestAnotherBuild(t *testing.T) {
	b, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, append(b, 0), 0o755); err != nil {
		t.Fatal(err)
	}
	cfg := setup{workers: 1, slots: 4}.config(t, backlogged(1))
	c, err := cluster.StartProcesses(t.Context(), cfg, cluster.Executable{Path: other, Env: nodes.Env}, io.Discard)
	if err == nil {
		c.Close()
		t.Fatal("another build was let in")
	}
	m := regexp.MustCompile(`-0 ended by itself: exit status 1: .*the other side is build ([0-9a-f]{12}), this one is ([0-9a-f]{12}): all processes of a cluster must be of one build`).FindStringSubmatch(err.Error())
	if m == nil || m[1] == m[2] {
		t.Errorf("error %v", err)
	}
}

// Nothing of a cluster listens on a fixed port, so none can be taken; what can run
// short are files. The error then says whose, what was to be opened and what to do.
//
// Fails if Node does not look for this error.
func TestTooFewFiles(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip(err)
	}
	cfg := setup{workers: 1, slots: 4}.config(t, backlogged(1))
	exe := cluster.Executable{Path: "/bin/sh", Args: []string{"-c", "ulimit -n 9; exec '" + os.Args[0] + "' \"$0\""}, Env: nodes.Env}
	c, err := cluster.StartProcesses(t.Context(), cfg, exe, io.Discard)
	if err == nil {
		c.Close()
		t.Fatal("nine files are enough")
	}
	for _, want := range []string{"-0 ended by itself: exit status 1", "too many open files", "raise the limit (ulimit -n)"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}
