package verdict

import (
	"testing"

	"benchrun/harness/result"
)

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name   string
		factor float64
		want   Verdict
		exit   result.Exit
	}{
		{"slower", 1.3, Slower, result.ExitRegression},
		{"faster", 0.7, Faster, result.ExitOK},
		{"same", 1.0, Same, result.ExitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Decide(lab{blocks: 8, value: times(c.factor)}.run(), nil, Rules{})
			if j := verdictOf(t, d, "D=true"); j.Verdict != c.want || d.Exit != c.exit {
				t.Errorf("%s, exit %d: %+v", j.Verdict, d.Exit, d.Reasons)
			}
		})
	}
}
