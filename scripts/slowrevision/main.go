package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	source   = "runtime/task/task.go"
	place    = "func (t *Task) initialize() error {\n"
	workload = "nightly-rescale"
	config   = "configs/nightly/10-rescale.toml"
	cell     = "R=true,D=false" // the path "downstream"
	guess    = 450 * time.Millisecond

	rounds    = 4
	tolerance = 0.03 // of the ratio
)

func main() {
	rise := flag.Float64("rise", 25, "by how many percent the primary metric is to rise")
	repeats := flag.Int("repeats", 6, "blocks of the pilot")
	flag.Parse()
	if *rise <= 0 || *repeats < 1 {
		fmt.Fprintln(os.Stderr, "slowrevision: -rise and -repeats are above 0")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	revision, err := slow(ctx, *rise/100, *repeats)
	if err != nil {
		fmt.Fprintln(os.Stderr, "slowrevision:", err)
		os.Exit(1)
	}
	fmt.Println(revision)
}

func slow(ctx context.Context, rise float64, repeats int) (string, error) {
	work, err := os.MkdirTemp("", "slowrevision")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	tree := filepath.Join(work, "tree")
	if _, err := run(ctx, ".", "git", "worktree", "add", "--quiet", "--detach", tree, "HEAD"); err != nil {
		return "", err
	}
	defer run(context.WithoutCancel(ctx), ".", "git", "worktree", "remove", "--force", tree)
	clean, err := os.ReadFile(filepath.Join(tree, source))
	if err != nil {
		return "", err
	}
	base := filepath.Join(work, "benchrun-base")
	if _, err := run(ctx, tree, "go", "build", "-o", base, "./cmd/benchrun"); err != nil {
		return "", err
	}
	wait, err := size(ctx, work, tree, base, clean, rise, repeats)
	if err != nil {
		return "", err
	}
	if err := plant(tree, clean, wait); err != nil {
		return "", err
	}
	if _, err := run(ctx, tree, "git", "-c", "user.name=benchrun", "-c", "user.email=benchrun@localhost", "-c", "commit.gpgsign=false", "commit", "--quiet", "--no-verify", "-am",
		fmt.Sprintf("Slower on purpose: restore on the path downstream waits %s", wait)); err != nil {
		return "", err
	}
	return run(ctx, tree, "git", "rev-parse", "HEAD")
}

// size finds the wait that raises the metric by the share: it measures, corrects
// by all that it has seen so far, and ends when the rise is right.
func size(ctx context.Context, work, tree, base string, clean []byte, rise float64, repeats int) (time.Duration, error) {
	wait := guess
	waited, risen := 0.0, 0.0 // seconds, over all rounds
	for range rounds {
		ratio, median, err := pilot(ctx, work, tree, base, clean, wait, repeats)
		if err != nil {
			return 0, err
		}
		fmt.Fprintf(os.Stderr, "%s %s: %.3f s; a wait of %s raises it by %.0f %%\n", workload, cell, median, wait, 100*(ratio-1))
		if math.Abs(ratio-1-rise) <= tolerance {
			return wait, nil
		}
		waited, risen = waited+wait.Seconds(), risen+median*(ratio-1)
		effect := risen / waited
		if effect < 0.2 || effect > 2 {
			return 0, fmt.Errorf("a second of waiting changes the metric by %.2f s: the wait does not act as it should, or the machine is too busy to tell", effect)
		}
		wait = time.Duration(rise * median / effect * float64(time.Second)).Round(time.Millisecond)
	}
	return wait, nil // what all rounds together say
}

// plant writes the wait into the source.
func plant(tree string, clean []byte, wait time.Duration) error {
	text := strings.Replace(string(clean), place,
		fmt.Sprintf("%s\tif p := t.plan(); p != nil && string(p.Path()) == \"downstream\" {\n\t\t<-time.After(%d * time.Millisecond)\n\t}\n", place, wait.Milliseconds()), 1)
	if text == string(clean) {
		return errors.New(source + " has no place for the wait any more")
	}
	if !strings.Contains(text, "\t\"time\"\n") {
		text = strings.Replace(text, "import (\n", "import (\n\t\"time\"\n", 1)
	}
	return os.WriteFile(filepath.Join(tree, source), []byte(text), 0o666)
}

// pilot measures what a wait does: the median ratio of the blocks, and the base
// build's median in seconds.
func pilot(ctx context.Context, work, tree, base string, clean []byte, wait time.Duration, repeats int) (ratio, median float64, err error) {
	if err := plant(tree, clean, wait); err != nil {
		return 0, 0, err
	}
	slowed := filepath.Join(work, "benchrun-slowed")
	if _, err := run(ctx, tree, "go", "build", "-o", slowed, "./cmd/benchrun"); err != nil {
		return 0, 0, err
	}
	out, err := run(ctx, tree, base, "run", config, "--only", "cell:"+cell, "--build", "base="+base, "--build", "slowed="+slowed,
		"--repeats", fmt.Sprint(repeats), "--quiet", "--no-report", "--out", filepath.Join(work, "runs"))
	if err != nil {
		return 0, 0, err
	}
	_, dir, _ := strings.Cut("\n"+out, "\nrun: ")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(tree, dir)
	}
	ratios, bases, err := pairs(dir)
	if err != nil {
		return 0, 0, err
	}
	if len(ratios) == 0 {
		return 0, 0, errors.New("the pilot has no pair")
	}
	return middle(ratios), middle(bases), nil
}

// pairs reads the primary metric of a run's blocks: slowed to base, and base.
func pairs(dir string) (ratios, bases []float64, err error) {
	var about struct {
		Workloads []struct{ Primary string }
	}
	b, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err == nil {
		err = json.Unmarshal(b, &about)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	if b, err = os.ReadFile(filepath.Join(dir, "trials.jsonl")); err != nil {
		return nil, nil, err
	}
	blocks := map[int]map[string]float64{}
	for line := range strings.Lines(string(b)) {
		var t struct {
			Build   string
			Block   int
			Warmup  bool
			Metrics map[string]float64
		}
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", dir, err)
		}
		if v, ok := t.Metrics[about.Workloads[0].Primary]; ok && !t.Warmup {
			if blocks[t.Block] == nil {
				blocks[t.Block] = map[string]float64{}
			}
			blocks[t.Block][t.Build] = v
		}
	}
	for _, b := range blocks {
		if b["base"] > 0 && b["slowed"] > 0 {
			ratios, bases = append(ratios, b["slowed"]/b["base"]), append(bases, b["base"])
		}
	}
	return ratios, bases, nil
}

func middle(xs []float64) float64 {
	slices.Sort(xs)
	return (xs[(len(xs)-1)/2] + xs[len(xs)/2]) / 2
}

// run runs a program and returns what it printed, without the last newline.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimRight(string(out), "\n"), nil
}
