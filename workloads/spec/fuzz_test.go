package spec

import (
	"errors"
	"os"
	"testing"
)

// FuzzProblems: whatever a file holds, it is a workload or a list of problems with
// their places, and there is no panic.
func FuzzProblems(f *testing.F) {
	for _, path := range []string{"testdata/contract.toml", "testdata/base.toml"} {
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte("schema = 1\nname = \"w\"\n[matrix]\n\"workload.parallelism\" = [1, \"x\"]\n\"cluster.workers\" = 2\n[[matrix-include]]\n[workload]\nvertex = [{}, 1]\nedge = [{ from = 1 }]\n[scenario]\nstep = [{ do = \"rescale\", parallelism = { a = 1 } }, { wait = {} }]\n"))
	f.Add([]byte("schema = 1\n[default]\ndetect_s = { relative = \"1 %\", absolute = \"1 s\" }\n[workload.a]\na.b = 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<14 {
			return // long files have many cells
		}
		check := func(err error) {
			ps, ok := errors.AsType[Problems](err)
			if err != nil && (!ok || len(ps) == 0) {
				t.Errorf("an error without a problem: %v", err)
			}
			for i := range ps {
				if ps[i].File != "w.toml" || ps[i].Line < 1 || ps[i].Column < 1 || ps[i].Text() == "" {
					t.Errorf("%+v", ps[i])
				}
			}
		}
		_, err := Parse("w.toml", "/dir", text, nil)
		check(err)
		_, err = ParseThresholds("w.toml", text)
		check(err)
	})
}
