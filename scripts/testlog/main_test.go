package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for _, x := range []struct {
		name, in string
		ok       bool
		want     []string // lines that must be there
		not      string
	}{
		{"passed", `{"Action":"output","Package":"p","Test":"TestA","Output":"noise\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"pass","Package":"p","Elapsed":1.25}
`, true, []string{"ok        1.2s  p", "1 packages, 1 tests passed, 0 failed, 0 skipped"}, "noise"},
		{"failed", `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"fail","Package":"p","Elapsed":1}
`, false, []string{"    a_test.go:3: got 1, want 2", "FAIL      1.0s  p", "1 packages, 0 tests passed, 1 failed, 0 skipped"}, ""},
		{"skipped", `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: takes an hour: set SOAK\n"}
{"Action":"skip","Package":"p","Test":"TestA"}
{"Action":"pass","Package":"p","Elapsed":0}
{"Action":"skip","Package":"q","Elapsed":0}
`, true, []string{"  skipped p TestA: takes an hour: set SOAK", "-     no tests  q"}, "==="},
		{"no compile", `{"Action":"build-output","ImportPath":"p","Output":"p/a.go:1: undefined: x\n"}
{"Action":"build-fail","ImportPath":"p"}
{"Action":"fail","Package":"p","Elapsed":0}
`, false, []string{"p/a.go:1: undefined: x"}, ""},
		{"nothing ran", "go: no such directory\n", false, []string{"go: no such directory"}, ""},
	} {
		t.Run(x.name, func(t *testing.T) {
			var out strings.Builder
			ok, err := report(strings.NewReader(x.in), &out)
			if err != nil || ok != x.ok {
				t.Fatalf("ok = %v, err = %v, want %v:\n%s", ok, err, x.ok, &out)
			}
			lines := strings.Split(out.String(), "\n")
			for _, want := range x.want {
				found := false
				for _, l := range lines {
					found = found || l == want
				}
				if !found {
					t.Errorf("no line %q in:\n%s", want, &out)
				}
			}
			if x.not != "" && strings.Contains(out.String(), x.not) {
				t.Errorf("%q in:\n%s", x.not, &out)
			}
		})
	}
}
