package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"benchrun/harness/target"
	"benchrun/harness/trial"
	"benchrun/runtime/timeline"
)

// damaging are real targets on which something spoils the log of a batch job
// before its master is killed for the second time: a bit in the middle of what
// the first master wrote.
func damaging(real trial.Targets) trial.Targets {
	out := trial.Targets{}
	for name, make := range real {
		out[name] = func() target.Target { return damagingTarget{make()} }
	}
	return out
}

type damagingTarget struct{ target.Target }

func (d damagingTarget) Start(ctx context.Context, r target.Request, log *timeline.Log) (target.Job, error) {
	j, err := d.Target.Start(ctx, r, log)
	return &damagingJob{Job: j, dir: r.Dir}, err
}

type damagingJob struct {
	target.Job
	dir   string
	kills int
}

func (d *damagingJob) Inject(ctx context.Context, f target.Fault) (time.Duration, error) {
	if f.Kind == "kill-jobmanager" {
		if d.kills++; d.kills == 2 {
			if err := spoil(filepath.Join(d.dir, "master", "job-events")); err != nil {
				return 0, err
			}
		}
	}
	return d.Job.Inject(ctx, f)
}

func spoil(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "log.*"))
	if err != nil || len(names) < 2 {
		return fmt.Errorf("%d files in %s, %w", len(names), dir, err)
	}
	first := slices.Min(names)
	b, err := os.ReadFile(first)
	if err != nil {
		return err
	}
	b[len(b)/2] ^= 1
	return os.WriteFile(first, b, 0o644)
}
