//go:build unix

package catalog

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"benchrun/workloads/spec"
)

// What has no end, or keeps who opens it waiting, is refused with its path and what
// it is, before anybody opens it; a link to a file is one.
//
// Fails if files does not look at what it has found, or looks at links.
func TestFilesAreRegular(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("real.txt"), []byte("x\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", in("s.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for _, err := range []error{syscall.Mkfifo(in("f.pipe"), 0o666), os.Symlink("/dev/zero", in("z.dev")), os.Symlink(in("real.txt"), in("l.txt"))} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string]string{"*.txt": "", "*.pipe": "f.pipe is a named pipe", "*.dev": "z.dev is a device", "*.sock": "s.sock is a socket"} {
		_, err := Files(&spec.Workload{Vertices: []spec.Vertex{{ID: "t", Operator: "lines", Kind: spec.Source, Params: spec.Params{Paths: []string{in(pattern)}}}}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", pattern, err)
		}
	}
}
