package targettest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"benchrun/harness/target"
	"benchrun/runtime/options"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// Conformance holds a target that runs jobs for real to what the interface
// promises: every job's output is proved, every fault leads to an event and a
// recovery, options are those of the running tasks, and Close ends it all.
func Conformance(t *testing.T, sut target.Target) {
	t.Run("jobs", func(t *testing.T) { jobs(t, sut) })
	t.Run("faults", func(t *testing.T) { faults(t, sut) })
	t.Run("savepoints", func(t *testing.T) { savepoints(t, sut) })
	t.Run("ends", func(t *testing.T) { ends(t, sut) })
	t.Run("batch faults", func(t *testing.T) { batchFaults(t, sut) })
	t.Run("refusals", func(t *testing.T) { refusals(t, sut) })
}

const workloadHead = `
schema = 1
name = "job"
description = "a small job"
[cluster]
target = %q
workers = 2
slots-per-worker = 8
network-memory = "32 MiB"
buffer-size = "4 KiB"
[options]
"execution.checkpointing.interval" = "30 ms"
"execution.checkpointing.unaligned.enabled" = true
[workload]
parallelism = 2
max-parallelism = 16
`

// Workload makes a workload for a target from lines: "a keyed-sum 3 cost = 1"
// is a vertex with its parallelism (0: the default) and parameters, "a hash b"
// an edge, "key=value" an override.
func Workload(t testing.TB, name string, lines ...string) *spec.Workload {
	t.Helper()
	return workload(t, fmt.Sprintf(workloadHead, name), lines)
}

func workload(t testing.TB, head string, lines []string) *spec.Workload {
	t.Helper()
	var vertices, edges strings.Builder
	var sets []string
	for _, l := range lines {
		f := strings.SplitN(l, " ", 4)
		switch {
		case len(f) == 1:
			sets = append(sets, l)
			continue
		case strings.Contains("forward rebalance rescale hash broadcast shuffle global custom", f[1]):
			fmt.Fprintf(&edges, "[[workload.edge]]\nfrom = %q\nto = %q\npartitioner = %q\n", f[0], f[2], f[1])
			continue
		}
		fmt.Fprintf(&vertices, "[[workload.vertex]]\nid = %q\noperator = %q\n", f[0], f[1])
		if len(f) > 2 && f[2] != "0" {
			fmt.Fprintf(&vertices, "parallelism = %s\n", f[2])
		}
		if len(f) > 3 {
			fmt.Fprintf(&vertices, "params = { %s }\n", f[3])
		}
	}
	text := head + vertices.String() + edges.String() + "[[scenario.step]]\ndo = \"finish\"\n"
	file, err := spec.Parse("job.toml", t.TempDir(), []byte(text), sets)
	if err != nil {
		t.Fatalf("%s\n%v", strings.Join(lines, "\n"), err)
	}
	w, err := file.Resolve(file.Cells()[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// session is one job on a target under test.
type session struct {
	t   *testing.T
	ctx context.Context
	job target.Job
	log *timeline.Log
	at  int // events before are seen
}

func start(t *testing.T, sut target.Target, w *spec.Workload) *session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s := &session{t: t, ctx: ctx, log: timeline.New()}
	var err error
	if s.job, err = sut.Start(ctx, target.Request{Workload: w, Dir: t.TempDir(), Seed: 1}, s.log); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // it is idempotent
			if err := s.job.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
	})
	return s
}

// await waits for the next event of a kind.
func (s *session) await(k timeline.Kind) timeline.Event {
	s.t.Helper()
	for {
		events, err := s.log.Wait(s.ctx, s.at)
		if err != nil {
			s.t.Fatalf("waiting for %s: %v; the job: %v", k, err, s.job.Err())
		}
		for _, e := range events {
			s.at++
			if e.Kind == k {
				return e
			}
		}
	}
}

// awaitSince waits for the next event of a kind that happened after a moment.
func (s *session) awaitSince(k timeline.Kind, t0 time.Duration) timeline.Event {
	s.t.Helper()
	for {
		if e := s.await(k); e.T >= t0 {
			return e
		}
	}
}

// fault looks for the event of a fault that has been injected. What it led to
// may have come before it.
func (s *session) fault(f target.Fault, t0 time.Duration) {
	s.t.Helper()
	for _, e := range s.log.Events() {
		if e.Kind == timeline.Fault {
			if e.T != t0 || e.Detail != f.Step || e.State != f.Kind {
				s.t.Errorf("event %+v, t0 %v", e, t0)
			}
			return
		}
	}
	s.t.Error("the fault is not in the timeline")
}

// prove finishes the job and looks at what came out; records < 0: anything.
func (s *session) prove(records int64) *target.Output {
	s.t.Helper()
	out, err := s.job.Finish(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	if !out.Proved || out.Lost != 0 || out.Duplicated != 0 || out.Received != out.Expected || out.Received == 0 || out.Digest != out.ExpectedDigest || len(out.Wrong) > 0 {
		s.t.Errorf("%+v", *out)
	}
	if records >= 0 && out.Received != records {
		s.t.Errorf("%d records came out, want %d", out.Received, records)
	}
	if s.job.Err() != nil {
		s.t.Errorf("the job: %v", s.job.Err())
	}
	return out
}

// backlogged is a job whose channels fill up.
func backlogged(sink string) []string {
	return []string{
		"numbers sequence 0 record-size = \"100 B\", keys = 1000", "slow keyed-sum 0 cost = \"50us\"", "out " + sink + " 0",
		"numbers hash slow", "slow rebalance out", "workload.max-parallelism=32",
		"options.\"execution.checkpointing.tolerable-failed-checkpoints\"=1000",
	}
}

var backlog = backlogged("verify-sink")

func faults(t *testing.T, sut target.Target) {
	for i, f := range []target.Fault{
		{Kind: "rescale", Parallelism: map[string]int{"slow": 3}},
		{Kind: "fail-task", Vertex: "slow", Subtask: 1},
		{Kind: "kill-worker", Worker: 0, ReplaceAfter: 50 * time.Millisecond},
		{Kind: "kill-worker", Worker: 1, ReplaceAfter: -1},
		{Kind: "freeze-worker", Worker: 0, For: 100 * time.Millisecond},
		{Kind: "fail-storage", StorageKind: "error", For: 100 * time.Millisecond},
		{Kind: "kill-jobmanager", DownFor: 50 * time.Millisecond},
		{Kind: "drop-partition"},
		{Kind: "kill-worker", Worker: 0, ReplaceAfter: 0},
		{Kind: "kill-jobmanager", DownFor: 0},
	} {
		sink := "verify-sink"
		if i > 7 { // committed files must be exact, too: each by whoever learns that its checkpoint is complete
			sink = "file-sink"
		}
		t.Run(fmt.Sprint(f.Kind, f.Worker, " ", sink), func(t *testing.T) {
			f.Step = "strike"
			s := start(t, sut, Workload(t, sut.Name(), backlogged(sink)...))
			s.await(timeline.CheckpointCompleted)
			if st := s.job.Status(); st.WorkersWithTasks != 2 {
				t.Errorf("%+v", st)
			}
			before := s.log.Now()
			t0, err := s.job.Inject(s.ctx, f)
			if errors.Is(err, target.ErrUnsupported) {
				if f.Kind != "drop-partition" && !(f.Kind == "kill-jobmanager" && sut.Name() == "embedded") {
					t.Errorf("%s: %v", f.Kind, err)
				}
				s.prove(-1) // and it did no harm
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if t0 < before || t0 > s.log.Now() {
				t.Errorf("t0 is %v, the fault was between %v and %v", t0, before, s.log.Now())
			}
			s.fault(f, t0)
			if f.Kind != "freeze-worker" && f.Kind != "fail-storage" {
				s.awaitSince(timeline.RestoreAssigned, t0)
			}
			s.awaitSince(timeline.CheckpointCompleted, t0)
			if used := s.job.Options(); used[options.CheckpointInterval.Key()] != "30ms" {
				t.Errorf("the tasks use %v", used)
			}
			s.prove(-1)
		})
	}
}

func savepoints(t *testing.T, sut target.Target) {
	s := start(t, sut, Workload(t, sut.Name(), backlog...))
	s.await(timeline.CheckpointCompleted)
	first, err := s.job.Savepoint(s.ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.job.Savepoint(s.ctx, true)
	if err != nil || second == first {
		t.Fatal(second, err)
	}
	<-s.job.Done()
	if s.job.Err() != nil {
		t.Error(s.job.Err())
	}
	for _, path := range []string{first, second} {
		set := fmt.Sprintf("options.\"execution.state-recovery.path\"=%s", path)
		if strings.Contains(set, " ") {
			t.Fatalf("a folder with a space: %q", path)
		}
		s := start(t, sut, Workload(t, sut.Name(), append([]string{set}, backlog...)...))
		if e := s.await(timeline.RestoreAssigned); e.Checkpoint < 1 {
			t.Errorf("%+v", e)
		}
		s.await(timeline.CheckpointCompleted)
		s.prove(-1)
	}
}

func ends(t *testing.T, sut target.Target) {
	t.Run("cancel", func(t *testing.T) {
		s := start(t, sut, Workload(t, sut.Name(), backlog...))
		s.await(timeline.CheckpointCompleted)
		if err := s.job.Cancel(s.ctx); err != nil {
			t.Fatal(err)
		}
		if s.job.Err() == nil {
			t.Error("a cancelled job has no error")
		}
		if _, err := s.job.Finish(s.ctx); err == nil {
			t.Error("a cancelled job finished")
		}
	})
	t.Run("close", func(t *testing.T) {
		start(t, sut, Workload(t, sut.Name(), backlog...)).await(timeline.CheckpointCompleted)
	})
	t.Run("a checkpoint that is not there", func(t *testing.T) {
		w := Workload(t, sut.Name(), append([]string{"options.\"execution.state-recovery.path\"=/nowhere/chk-1"}, backlog...)...)
		j, err := sut.Start(t.Context(), target.Request{Workload: w, Dir: t.TempDir(), Seed: 1}, timeline.New())
		if err == nil {
			j.Close()
			t.Error("it was found")
		}
	})
	t.Run("unproved", func(t *testing.T) {
		s := start(t, sut, Workload(t, sut.Name(), "s sequence 0 records = 100", "out discard 0", "s rebalance out"))
		if out, err := s.job.Finish(s.ctx); err != nil || out.Proved {
			t.Errorf("%+v, %v", out, err)
		}
	})
}
