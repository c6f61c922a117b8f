package master

import (
	"time"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/graph"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/storage"
	"benchrun/runtime/timeline"
)

// Config is what a master is started with.
type Config struct {
	Graph       *graph.Graph // at the desired parallelism
	Values      options.Values
	Checkpoints storage.Store
	Timeline    *timeline.Log
	Origin      time.Time // of the cluster's clock
	Transport   exchange.Network
	Epoch       int64
	// Leads tells whether this master still leads; it is asked before a
	// checkpoint is completed. nil: there can be no other.
	Leads   func() error
	FirstID int64 // of its first checkpoint; <= 0: 1
	Seed    uint64
	Keep    bool // completed checkpoints stay when the job ends
}

func schedulerConfig(cfg Config) scheduling.Config {
	v := cfg.Values
	c := scheduling.Config{
		RegionFailover: options.FailoverStrategy.Get(v) == "region", ResourceWait: options.SubmissionResourceTimeout.Get(v),
		SubmissionStabilization: options.SubmissionStabilization.Get(v), Cooldown: options.SchedulerCooldown.Get(v),
		Stabilization: options.SchedulerStabilization.Get(v), MaxDelay: options.RescaleMaxDelay.Get(v),
		MaxCheckpointFailures: int(options.RescaleMaxCheckpointFailures.Get(v)), Seed: cfg.Seed,
		FirstAttempt: int(max(cfg.Epoch-1, 0)) * control.AttemptsPerEpoch,
		Restart:      restartConfig(v),
	}
	g := cfg.Graph
	for i := range g.Vertices {
		x := &g.Vertices[i]
		c.Vertices = append(c.Vertices, scheduling.Vertex{ID: x.ID, Parallelism: x.Parallelism, MaxParallelism: x.MaxParallelism})
	}
	for _, r := range g.Regions() {
		var ids []string
		for _, i := range r {
			ids = append(ids, g.Vertices[i].ID)
		}
		c.Regions = append(c.Regions, ids)
	}
	return c
}

func restartConfig(v options.Values) scheduling.RestartConfig {
	c := scheduling.RestartConfig{Type: scheduling.RestartType(options.RestartType.Get(v))}
	switch c.Type {
	case scheduling.FixedDelay:
		c.Attempts, c.Delay = options.RestartFixedAttempts.Get(v), options.RestartFixedDelay.Get(v)
	case scheduling.FailureRate:
		c.Attempts, c.Delay = options.RestartFailureRateMax.Get(v), options.RestartFailureRateDelay.Get(v)
		c.Interval = options.RestartFailureRateInterval.Get(v)
	case scheduling.ExponentialDelay:
		c.Attempts, c.Initial, c.Max = options.RestartExpAttempts.Get(v), options.RestartExpInitial.Get(v), options.RestartExpMax.Get(v)
		c.Multiplier, c.ResetThreshold, c.Jitter = options.RestartExpMultiplier.Get(v), options.RestartExpReset.Get(v), options.RestartExpJitter.Get(v)
	}
	return c
}

func coordinatorConfig(cfg Config) checkpoint.Config {
	v := cfg.Values
	c := checkpoint.Config{
		FirstID:  cfg.FirstID,
		Interval: options.CheckpointInterval.Get(v), Timeout: options.CheckpointTimeout.Get(v), MinPause: options.CheckpointMinPause.Get(v),
		MaxConcurrent: int(options.MaxConcurrentCheckpoints.Get(v)), TolerableFailures: int(options.TolerableFailedCheckpoints.Get(v)),
		Retained: int(options.NumRetained.Get(v)), Unaligned: options.UnalignedEnabled.Get(v), AlignedTimeout: options.AlignedTimeout.Get(v),
	}
	switch options.ExternalizedRetention.Get(v) {
	case "DELETE_ON_CANCELLATION":
		c.Retention = checkpoint.DeleteOnCancellation
	case "RETAIN_ON_CANCELLATION":
		c.Retention = checkpoint.RetainOnCancellation
	}
	return c
}
