package page

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"benchrun/harness/result"
	"benchrun/reports/chart"
)

// label names a cell as a person would: the flags that are on, then what else
// its matrix varies.
func label(cell string) string {
	if cell == "default" || cell == "" {
		return "default"
	}
	var on, rest []string
	flags := 0
	for pair := range strings.SplitSeq(cell, ",") {
		name, value, ok := strings.Cut(pair, "=")
		value = unescape(value)
		switch {
		case !ok:
			return cell
		case value == "true":
			flags++
			on = append(on, name)
		case value == "false":
			flags++
		default:
			rest = append(rest, name+" "+value)
		}
	}
	switch {
	case len(on) > 0:
		rest = append([]string{strings.Join(on, "+")}, rest...)
	case flags > 0:
		rest = append([]string{"no option"}, rest...)
	}
	return strings.Join(rest, ", ")
}

// nouns name what a fault was.
var nouns = map[string]string{
	"rescale":         "the rescale",
	"fail-task":       "the failure of a task",
	"kill-worker":     "the loss of a worker",
	"freeze-worker":   "the freezing of a worker",
	result.KillMaster: "the loss of the master",
	"fail-storage":    "the failure of the storage",
	"drop-partition":  "the loss of a partition",
	"upgrade":         "the upgrade",
	"rollback":        "the rollback",
	result.StartFault: "the start",
}

func noun(kind string) string {
	if n, ok := nouns[kind]; ok {
		return n
	}
	if kind == "" {
		return "the fault"
	}
	return "the fault " + kind
}

// rough writes seconds with two digits that count, for sentences.
func rough(v float64, unit string) string {
	if unit != "s" {
		return ""
	}
	switch a := math.Abs(v); {
	case a == 0:
		return "0 s"
	case a < 0.001:
		return "less than a millisecond"
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 0, 64) + " s"
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 1, 64) + " s"
	case a >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64) + " s"
	}
	return strconv.FormatFloat(v, 'f', 3, 64) + " s"
}

// quantityWords writes a value for a sentence.
func quantityWords(v float64, unit string) string {
	if unit == "s" {
		return rough(v, unit)
	}
	return chart.Quantity(v, unit)
}

// times says how much better a ratio is, in the direction of better.
func times(ratio float64, better result.Better) string {
	if better == result.Lower {
		ratio = 1 / ratio
	}
	word := "faster"
	if better == result.Higher {
		word = "more"
	}
	switch {
	case math.IsInf(ratio, 0) || math.IsNaN(ratio) || ratio <= 0:
		return ""
	case ratio >= 10:
		return fmt.Sprintf("%.0f times %s", ratio, plainer(word, better))
	case ratio >= 1.95:
		return fmt.Sprintf("%.1f times %s", ratio, plainer(word, better))
	case ratio >= 1.005 && better == result.Lower: // as the ratio in the tables has it
		return fmt.Sprintf("%.0f %% less", (1-1/ratio)*100)
	case ratio >= 1.005:
		return fmt.Sprintf("%.0f %% %s", (ratio-1)*100, word)
	}
	return ""
}

func plainer(word string, better result.Better) string {
	if better == result.Higher {
		return "as much"
	}
	return word
}

func lower(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

// count says a number with its noun.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// numeral writes a small number out.
func numeral(n int) string {
	if words := []string{"no", "one", "two", "three", "four", "five", "six"}; n >= 0 && n < len(words) {
		return words[n]
	}
	return strconv.Itoa(n)
}

// list joins names to a phrase.
func list(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

// quote makes a word safe for a shell.
func quote(word string) string {
	safe := word != ""
	for _, r := range word {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@%+", r)) {
			safe = false
		}
	}
	if safe {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// command joins words to a line for a shell.
func command(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quote(w)
	}
	return strings.Join(out, " ")
}

// Reproduce is the command that runs one cell again as this run did.
func Reproduce(r *result.Run, w *result.Workload, cell string) string {
	if slices.Contains(w.Tags, "self-test") { // its workload is built in, and no file
		return "benchrun gate --self-test"
	}
	words := []string{"benchrun", "run", quote(w.File), "--only", "'cell:" + strings.ReplaceAll(cell, "'", `'\''`) + "'"}
	s := r.Settings
	if s.Quick {
		words = append(words, "--quick")
	}
	for _, o := range r.Overrides {
		words = append(words, "--set", quote(o))
	}
	if s.Repeats != nil {
		words = append(words, "--repeats", strconv.Itoa(*s.Repeats))
	}
	if s.Warmup != nil {
		words = append(words, "--warmup", strconv.Itoa(*s.Warmup))
	}
	if s.Seed != nil {
		words = append(words, "--seed", strconv.FormatUint(*s.Seed, 10))
	}
	if s.Target != "" {
		words = append(words, "--target", quote(s.Target))
	}
	if s.FromScratch {
		words = append(words, "--from-scratch")
	}
	if r.BaseBuild != "" {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.Builds)), func(n string) bool { return n == r.BaseBuild })
		for _, n := range append([]string{r.BaseBuild}, names...) {
			words = append(words, "--build", quote(n+"="+r.Builds[n].Path))
		}
	}
	return strings.Join(words, " ")
}
