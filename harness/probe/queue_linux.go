package probe

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// queue reads the load and the number of tasks that run or want to, the
// reader's own among them, from /proc below a root.
func queue(root string) (load1 float64, running int, ok bool) {
	b, err := os.ReadFile(filepath.Join(root, "proc/loadavg"))
	if err != nil {
		return 0, 0, false
	}
	f := strings.Fields(string(b)) // 0.35 0.44 1.81 1/87 491
	if len(f) < 4 {
		return 0, 0, false
	}
	load1, err1 := strconv.ParseFloat(f[0], 64)
	now, _, cut := strings.Cut(f[3], "/")
	running, err2 := strconv.Atoi(now)
	return load1, running, err1 == nil && err2 == nil && cut && running >= 1
}
