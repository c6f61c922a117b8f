package options

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// unlimited stands for "no limit" where Flink uses Integer.MAX_VALUE.
const unlimited = math.MaxInt32

const unalignedKey = "execution.checkpointing.unaligned.enabled"

var withUnaligned = &Condition{Key: unalignedKey, Values: []any{true}}

// Checkpoints.
var (
	CheckpointInterval = duration("execution.checkpointing.interval", 0,
		"time between two checkpoints; 0 s switches checkpoints off", zeroOr(10*time.Millisecond))
	CheckpointTimeout = duration("execution.checkpointing.timeout", 10*time.Minute,
		"a checkpoint that is not complete after this time is aborted", atLeast(10*time.Millisecond))
	CheckpointMinPause = duration("execution.checkpointing.min-pause", 0,
		"time that must pass between the end of one checkpoint and the start of the next")
	MaxConcurrentCheckpoints = integerOption("execution.checkpointing.max-concurrent-checkpoints", 1,
		"checkpoints that may be in progress at one time; unaligned ones need 1", atLeast(1))
	TolerableFailedCheckpoints = integerOption("execution.checkpointing.tolerable-failed-checkpoints", 0,
		"consecutive failed checkpoints that do not yet fail the job", atLeast(0))
	NumRetained = integerOption("execution.checkpointing.num-retained", 1,
		"complete checkpoints that are kept", atLeast(1))
	ExternalizedRetention = enum("execution.checkpointing.externalized-checkpoint-retention", "NO_EXTERNALIZED_CHECKPOINTS",
		"what happens to the newest checkpoint when the job ends",
		words("NO_EXTERNALIZED_CHECKPOINTS", "DELETE_ON_CANCELLATION", "RETAIN_ON_CANCELLATION"))
	CheckpointsAfterFinish = boolean("execution.checkpointing.checkpoints-after-tasks-finish", true,
		"go on with checkpoints when some tasks have finished",
		alias("execution.checkpointing.checkpoints-after-tasks-finish.enabled"))
	DataInlineThreshold = size("execution.checkpointing.data-inline-threshold", 20<<10,
		"state smaller than this is stored inside the checkpoint's metadata", between[int64](0, 1<<20, FormatSize))
	CheckpointMode = enum("execution.checkpointing.mode", "EXACTLY_ONCE",
		"the guarantee of checkpoints", words("EXACTLY_ONCE"))
)

// Unaligned checkpoints and their recovery.
var (
	UnalignedEnabled = boolean(unalignedKey, false,
		"barriers overtake records, which become part of the checkpoint", short("U"))
	AlignedTimeout = duration("execution.checkpointing.aligned-checkpoint-timeout", 0,
		"a checkpoint starts aligned and turns unaligned after this time; 0 s: unaligned from the start", inertUnless(withUnaligned))
	UnalignedForced = boolean("execution.checkpointing.unaligned.forced", false,
		"allow unaligned checkpoints with custom partitioners", inertUnless(withUnaligned))
	MaxSubtasksPerChannelStateFile = integerOption("execution.checkpointing.unaligned.max-subtasks-per-channel-state-file", 5,
		"subtasks of one worker that share a file of in-flight data", atLeast(1), inertUnless(withUnaligned))
	RecoverOutputDownstream = boolean("execution.checkpointing.unaligned.recover-output-on-downstream.enabled", false,
		"the downstream tasks restore the in-flight output of their upstream tasks; nothing is sent again", short("R"), inertUnless(withUnaligned))
	DuringRecovery = boolean("execution.checkpointing.unaligned.during-recovery.enabled", false,
		"tasks run and take checkpoints while in-flight data are still being restored", short("D"),
		alias("execution.checkpointing.during-recovery.enabled"),
		requires("execution.checkpointing.unaligned.recover-output-on-downstream.enabled", unalignedKey))
)

// Restore at the job's start.
var (
	RecoveryPath = text("execution.state-recovery.path", "",
		"checkpoint or savepoint from which the job starts")
	ClaimMode = enum("execution.state-recovery.claim-mode", "NO_CLAIM",
		"who owns the checkpoint that the job starts from", words("NO_CLAIM", "CLAIM"), inertUnlessSet("execution.state-recovery.path"))
	IgnoreUnclaimedState = boolean("execution.state-recovery.ignore-unclaimed-state", false,
		"start although the checkpoint holds state of operators that the job has not", inertUnlessSet("execution.state-recovery.path"))
	WithoutChannelStateCheckpoint = long("execution.state-recovery.without-channel-state.checkpoint-id", -1,
		"restore this checkpoint without its in-flight data, which are lost; -1: none",
		alias("execution.checkpointing.recover-without-channel-state.checkpoint-id"), atLeast[int64](-1))
)

// The data path.
var (
	BufferTimeout = duration("execution.buffer-timeout.interval", 100*time.Millisecond,
		"a buffer that is not full is sent after this time; 0 s: after every record")
	OperatorChaining = boolean("pipeline.operator-chaining.enabled", true,
		"run operators that a forward edge joins in one task")
	PauseSources = boolean("pipeline.sources.pause-until-first-checkpoint", false,
		"after a restore, sources emit nothing until the first checkpoint is triggered")
	WatermarkInterval = duration("pipeline.auto-watermark-interval", 200*time.Millisecond,
		"time between two watermarks of a source", atLeast(time.Millisecond))
)

func restartIs(kind string) *Condition {
	return &Condition{Key: "restart-strategy.type", Values: []any{kind}}
}

// Restarts and failures.
var (
	RestartType = enum("restart-strategy.type", "fixed-delay",
		"how the job restarts after a failure", words("none", "fixed-delay", "failure-rate", "exponential-delay"),
		spelled("off", "none"), spelled("disable", "none"),
		spelled("fixeddelay", "fixed-delay"), spelled("failurerate", "failure-rate"), spelled("exponentialdelay", "exponential-delay"))
	RestartFixedAttempts = integerOption("restart-strategy.fixed-delay.attempts", unlimited,
		"restarts before the job fails", atLeast(0), inertUnless(restartIs("fixed-delay")))
	RestartFixedDelay = duration("restart-strategy.fixed-delay.delay", 0,
		"pause before a restart", inertUnless(restartIs("fixed-delay")))
	RestartFailureRateMax = integerOption("restart-strategy.failure-rate.max-failures-per-interval", 1,
		"failures in one interval before the job fails", atLeast(1), inertUnless(restartIs("failure-rate")))
	RestartFailureRateInterval = duration("restart-strategy.failure-rate.failure-rate-interval", time.Minute,
		"interval in which failures are counted", atLeast(time.Millisecond), inertUnless(restartIs("failure-rate")))
	RestartFailureRateDelay = duration("restart-strategy.failure-rate.delay", time.Second,
		"pause before a restart", inertUnless(restartIs("failure-rate")))
	RestartExpInitial = duration("restart-strategy.exponential-delay.initial-backoff", time.Second,
		"pause before the first restart", atLeast(time.Millisecond), inertUnless(restartIs("exponential-delay")))
	RestartExpMax = duration("restart-strategy.exponential-delay.max-backoff", time.Minute,
		"longest pause before a restart", atLeast(time.Millisecond), inertUnless(restartIs("exponential-delay")))
	RestartExpMultiplier = float("restart-strategy.exponential-delay.backoff-multiplier", 1.5,
		"factor from one pause to the next", atLeast(1.0), inertUnless(restartIs("exponential-delay")))
	RestartExpReset = duration("restart-strategy.exponential-delay.reset-backoff-threshold", time.Hour,
		"the pause starts anew after the job has run this long", atLeast(time.Millisecond), inertUnless(restartIs("exponential-delay")))
	RestartExpJitter = float("restart-strategy.exponential-delay.jitter-factor", 0.1,
		"random part of a pause, 0 to 1", between(0.0, 1.0, func(f float64) string { return fmt.Sprint(f) }), inertUnless(restartIs("exponential-delay")))
	RestartExpAttempts = integerOption("restart-strategy.exponential-delay.attempts-before-reset-backoff", unlimited,
		"restarts without a reset before the job fails", atLeast(1), inertUnless(restartIs("exponential-delay")))
	HeartbeatInterval = duration("heartbeat.interval", time.Second,
		"time between two heartbeats of a worker", atLeast(time.Millisecond))
	HeartbeatTimeout = duration("heartbeat.timeout", 5*time.Second,
		"a worker that was not heard for this long is lost", atLeast(time.Millisecond))
	FailoverStrategy = enum("jobmanager.execution.failover-strategy", "region",
		"what restarts when a task fails: its pipelined region, or all", words("region", "full"))
)

// The adaptive scheduler.
var (
	SchedulerCooldown = duration("jobmanager.adaptive-scheduler.executing.cooldown-after-rescaling", 0,
		"time after a rescale in which no other starts")
	SchedulerStabilization = duration("jobmanager.adaptive-scheduler.executing.resource-stabilization-timeout", 0,
		"how long a running job waits for the resources it desires before it takes those that suffice")
	SubmissionStabilization = duration("jobmanager.adaptive-scheduler.submission.resource-stabilization-timeout", 0,
		"the same at submission")
	SubmissionResourceTimeout = duration("jobmanager.adaptive-scheduler.submission.resource-wait-timeout", 5*time.Minute,
		"a job that has too few resources for this long fails")
	RescaleMaxDelay = duration("jobmanager.adaptive-scheduler.rescale-trigger.max-delay", 0,
		"longest time that a rescale waits for a checkpoint")
	RescaleMaxCheckpointFailures = integerOption("jobmanager.adaptive-scheduler.rescale-trigger.max-checkpoint-failures", 2,
		"failed checkpoints after which a rescale no longer waits", atLeast(1))
)

const batchRecoveryKey = "execution.batch.job-recovery.enabled"

var (
	withBatchRecovery = &Condition{Key: batchRecoveryKey, Values: []any{true}}
	withSpeculation   = &Condition{Key: "execution.batch.speculative.enabled", Values: []any{true}}
)

// Recovery of batch jobs when their master is lost. The mode and the sync
// policy are ours; the other keys are Flink's.
var (
	BatchJobRecovery = boolean(batchRecoveryKey, false,
		"the master of a batch job keeps a log of what has finished, and a new one goes on from it; off: the job begins anew", short("J"))
	BatchRecoveryMode = enum("execution.batch.job-recovery.mode", "hardened",
		"how the log of a batch job is written and replayed: hardened keeps all that can be kept, faithful does as Flink does, its weaknesses included", words("hardened", "faithful"), inertUnless(withBatchRecovery))
	PreviousWorkerTimeout = duration("execution.batch.job-recovery.previous-worker.recovery.timeout", 30*time.Second,
		"how long a new master waits for the partitions that workers still hold", inertUnless(withBatchRecovery))
	BatchSnapshotMinPause = duration("execution.batch.job-recovery.snapshot.min-pause", 3*time.Minute,
		"shortest pause between two snapshots of the split enumerators of a batch job", inertUnless(withBatchRecovery))
	JobEventBufferSize = size("job-event.store.write-buffer.size", 1<<20,
		"buffer of the log of a batch job", atLeast[int64](1), inertUnless(withBatchRecovery))
	JobEventFlushInterval = duration("job-event.store.write-buffer.flush-interval", time.Second,
		"time between two flushes of that buffer", atLeast(time.Millisecond), inertUnless(withBatchRecovery))
	JobEventSyncPolicy = enum("job-event.store.sync-policy", "interval",
		"when the log is synced to the disk: never, with each flush by time, when a vertex is finished, or with each event",
		words("none", "interval", "vertex", "always"), inertUnless(&Condition{Key: "execution.batch.job-recovery.mode", Values: []any{"hardened"}}))
	WorkerRegistrationTimeout = duration("taskmanager.registration.timeout", 5*time.Minute,
		"how long a worker without a master keeps its partitions", atLeast(time.Millisecond))
)

// The adaptive batch scheduler.
var (
	BatchDataVolumePerTask = size("execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", 16<<20,
		"bytes that a task whose parallelism is decided at run time should read", atLeast[int64](1))
	BatchMinParallelism = integerOption("execution.batch.adaptive.auto-parallelism.min-parallelism", 1,
		"lowest parallelism that is decided at run time", atLeast(1))
	BatchMaxParallelism = integerOption("execution.batch.adaptive.auto-parallelism.max-parallelism", 128,
		"highest parallelism that is decided at run time", atLeast(1))
	BatchSourceParallelism = integerOption("execution.batch.adaptive.auto-parallelism.default-source-parallelism", 0,
		"parallelism of sources that do not say one; 0: the highest", atLeast(0))
)

// SlotRequestTimeout is of batch jobs: a streaming job waits for resources with
// SubmissionResourceTimeout, as Flink's adaptive scheduler does.
var SlotRequestTimeout = duration("slot.request.timeout", 5*time.Minute,
	"a batch job with a task that all slots of its workers together are too few for fails after this time; streaming: jobmanager.adaptive-scheduler.submission.resource-wait-timeout",
	atLeast(time.Millisecond))

// The blocking exchange. Flink compresses since 1.15; NONE is the only way to
// switch that off since 2.0.
var (
	ShuffleCodec = enum("taskmanager.network.compression.codec", "LZ4",
		"how the data between the tasks of a batch job are compressed", words("NONE", "LZ4", "ZSTD"))
	ShuffleMinBuffers = integerOption("taskmanager.network.sort-shuffle.min-buffers", 512,
		"buffers with which a task of a batch job writes a partition, at least 4 a subpartition; if not set, fewer where network memory is short", atLeast(8))
	ShuffleReadMemory = size("taskmanager.memory.framework.off-heap.batch-shuffle.size", 64<<20,
		"memory of each worker for reading the partitions of batch jobs, beside its network memory", atLeast[int64](1<<20))
)

// Speculative execution of slow tasks of batch jobs.
var (
	SpeculationEnabled = boolean("execution.batch.speculative.enabled", false,
		"start slow tasks a second time elsewhere; the first to finish counts")
	SpeculationMaxExecutions = integerOption("execution.batch.speculative.max-concurrent-executions", 2,
		"executions of one task at one time, the first one included", atLeast(1), inertUnless(withSpeculation))
	SpeculationBlockSlowNode = duration("execution.batch.speculative.block-slow-node-duration", time.Minute,
		"how long a worker with a slow task gets no new ones", inertUnless(withSpeculation))
	SlowTaskCheckInterval = duration("slow-task-detector.check-interval", time.Second,
		"time between two searches for slow tasks", atLeast(time.Millisecond), inertUnless(withSpeculation))
	SlowTaskBaselineRatio = float("slow-task-detector.execution-time.baseline-ratio", 0.75,
		"share of a vertex's tasks that must have finished before any is slow", between(0.0, 1.0, func(f float64) string { return fmt.Sprint(f) }), inertUnless(withSpeculation))
	SlowTaskBaselineMultiplier = float("slow-task-detector.execution-time.baseline-multiplier", 1.5,
		"a task is slow beyond this many times their median", atLeast(0.0), inertUnless(withSpeculation))
	SlowTaskBaselineLowerBound = duration("slow-task-detector.execution-time.baseline-lower-bound", time.Minute,
		"a task that ran for less is not slow", inertUnless(withSpeculation))
)

type setting func(*Info)

func option[T any](key string, t Type, def T, help string, settings []setting) Option[T] {
	i := &Info{Key: key, Type: t, Default: def, Help: help}
	for _, s := range settings {
		s(i)
	}
	return Option[T]{register(i)}
}

func boolean(key string, def bool, help string, s ...setting) Option[bool] {
	return option(key, Bool, def, help, s)
}
func integerOption(key string, def int, help string, s ...setting) Option[int] {
	return option(key, Int, def, help, s)
}
func long(key string, def int64, help string, s ...setting) Option[int64] {
	return option(key, Long, def, help, s)
}
func float(key string, def float64, help string, s ...setting) Option[float64] {
	return option(key, Float, def, help, s)
}
func duration(key string, def time.Duration, help string, s ...setting) Option[time.Duration] {
	return option(key, Duration, def, help, s)
}
func size(key string, def int64, help string, s ...setting) Option[int64] {
	return option(key, Size, def, help, s)
}
func enum(key, def, help string, s ...setting) Option[string] {
	return option(key, Enum, def, help, s)
}
func text(key, def, help string, s ...setting) Option[string] {
	return option(key, String, def, help, s)
}

func short(name string) setting { return func(i *Info) { i.Short = name } }
func alias(key string) setting  { return func(i *Info) { i.Aliases = append(i.Aliases, key) } }
func requires(keys ...string) setting {
	return func(i *Info) { i.Requires = keys }
}
func inertUnless(c *Condition) setting { return func(i *Info) { i.Inert = c } }

// inertUnlessSet is a condition without values: the option is not at its default.
func inertUnlessSet(key string) setting { return inertUnless(&Condition{Key: key}) }
func words(w ...string) setting         { return func(i *Info) { i.Enum = w } }
func spelled(other, word string) setting {
	return func(i *Info) {
		if i.words == nil {
			i.words = map[string]string{}
		}
		i.words[other] = word
	}
}

func atLeast[T cmp.Ordered](low T) setting {
	return func(i *Info) {
		i.check = func(v any) error {
			if x := v.(T); x < low {
				return fmt.Errorf("must be at least %v, not %v", i.Canonical(low), i.Canonical(v))
			}
			return nil
		}
	}
}

func between[T cmp.Ordered](low, high T, show func(T) string) setting {
	return func(i *Info) {
		i.check = func(v any) error {
			if x := v.(T); x < low || x > high {
				return fmt.Errorf("must be between %s and %s, not %s", show(low), show(high), show(x))
			}
			return nil
		}
	}
}

func zeroOr(low time.Duration) setting {
	return func(i *Info) {
		i.check = func(v any) error {
			if d := v.(time.Duration); d != 0 && d < low {
				return fmt.Errorf("must be 0 s or at least %s, not %s", FormatDuration(low), FormatDuration(d))
			}
			return nil
		}
	}
}
