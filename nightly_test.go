package benchrun_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestNightly runs scripts/nightly in a repository of its own, with a compiler
// that makes a benchrun which only plays: the variable PLAY says how.
//
// Fails if an error that nobody expected ends the script with 1, which means
// slower; if the code of the gate is not the night's; if a signal waits for the
// child's own end; or if --help loses a line.
func TestNightly(t *testing.T) {
	for _, tool := range []string{"bash", "git", "sed"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("there is no %s on the PATH", tool)
		}
	}
	script, err := os.ReadFile("scripts/nightly")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/nightly",
		Setup: func(e *testscript.Env) error {
			repo := filepath.Join(e.WorkDir, "repo")
			for _, dir := range []string{"scripts", "configs/nightly", "results/baselines"} {
				if err := os.MkdirAll(filepath.Join(repo, dir), 0o777); err != nil {
					return err
				}
			}
			if err := os.WriteFile(filepath.Join(repo, "scripts/nightly"), script, 0o777); err != nil {
				return err
			}
			e.Setenv("PATH", filepath.Join(e.WorkDir, "bin")+":"+e.Getenv("PATH"))
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("TMPDIR", e.WorkDir)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"ends": ends},
	})
}

// ends runs a command and checks its exit code: ends 4 COMMAND ARGS....
func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: ends CODE COMMAND ARGS...")
	}
	code := "0"
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		code = strings.TrimPrefix(err.Error(), "exit status ")
	}
	if code != args[0] {
		ts.Fatalf("exit code %s, want %s", code, args[0])
	}
}
