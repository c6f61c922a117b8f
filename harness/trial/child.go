package trial

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/runtime/timeline"
	"benchrun/workloads/spec"
)

// Targets makes a target by its name.
type Targets map[string]func() target.Target

// Exit statuses of the child. A trial that failed is reported, not signalled.
const (
	childOK       = 0
	childBroken   = 1 // stdin or stdout
	childProtocol = 5 // the request is of another version
)

// errParentGone is the cause when stdin ends.
var errParentGone = errors.New("stopped by the run")

// flushEvery bounds how long an event waits on its way to the parent, so that
// a trial that is killed has its timeline almost complete.
const flushEvery = 250 * time.Millisecond

// Child runs the one trial that a parent asks for on in, and reports on out.
// It returns the process's exit status. in must stay open until the trial has
// ended; its end interrupts the trial.
func Child(ctx context.Context, in io.Reader, out, stderr io.Writer, targets Targets, revision string) int {
	w := &messages{out: bufio.NewWriterSize(out, 64<<10)}
	reader := bufio.NewReader(in)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		fmt.Fprintf(stderr, "trial: no request on stdin: %v\n", err)
		return childBroken
	}
	var r Request
	if err := json.Unmarshal(line, &r); err != nil {
		w.send(Message{Error: fmt.Sprintf("the request is no JSON: %v", err)})
		return childProtocol
	}
	hello := Hello{Protocol: Protocol, Revision: revision}
	if r.Protocol != Protocol {
		w.send(Message{Hello: &hello})
		w.send(Message{Error: fmt.Sprintf("protocol %d is asked for; this build speaks %d", r.Protocol, Protocol)})
		return childProtocol
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // ends with stdin, at the latest with the process
		io.Copy(io.Discard, reader)
		cancel(errParentGone)
	}()
	t := runRequest(ctx, r, w, hello, stderr, targets)
	t.Trial, t.Cell, t.Build, t.Block, t.Warmup, t.Order, t.Revision = r.Trial, r.Cell, r.Build, r.Block, r.Warmup, r.Order, revision
	if err := w.send(Message{Trial: t}); err != nil {
		fmt.Fprintf(stderr, "trial: reporting: %v\n", err)
		return childBroken
	}
	return childOK
}

// runRequest carries a request out. Whatever goes wrong becomes an outcome.
func runRequest(ctx context.Context, r Request, w *messages, hello Hello, stderr io.Writer, targets Targets) *result.Trial {
	refuse := func(o result.Outcome, format string, args ...any) *result.Trial {
		w.send(Message{Hello: &hello})
		return &result.Trial{Outcome: o, Reason: fmt.Sprintf(format, args...), Phase: "start", Started: time.Now().UTC(), Flags: map[string]any{}, Options: map[string]any{}}
	}
	f, err := spec.Parse(r.File, r.Dir, []byte(r.Text), r.Overrides)
	if err != nil {
		return refuse(result.Unsupported, "this build refuses the workload: %v", err)
	}
	job, err := f.Resolve(r.Cell)
	if err != nil {
		return refuse(result.Unsupported, "this build refuses the cell: %v", err)
	}
	make, ok := targets[job.Cluster.Target]
	if !ok {
		t := refuse(result.Unsupported, "this build has no target %q", job.Cluster.Target)
		t.Workload, t.Flags, t.Target = f.Name, job.Cell.Flags, job.Cluster.Target
		return t
	}
	sut := make()
	hello.Target, hello.Version = sut.Name(), sut.Version()
	w.send(Message{Hello: &hello})
	log := timeline.New()
	stream := streamEvents(log, w)
	sampled := sampleHost(log)
	delays := map[string]time.Duration{}
	for point, us := range r.DelaysUs {
		delays[point] = time.Duration(us) * time.Microsecond
	}
	t := Execution{
		Workload: private(job, r.Trial, r.Submission), Target: sut, Block: r.Block, Folder: r.Folder, Keep: r.Keep, Scratch: r.FromScratch, Submission: r.Submission, Delays: delays, Log: log, Stderr: stderr,
		Phase: func(step string) { w.send(Message{Phase: step}) },
	}.Run(ctx)
	sampled()
	if err := stream(); err != nil {
		fmt.Fprintf(stderr, "trial: reporting events: %v\n", err)
	}
	t.Workload, t.Flags = f.Name, job.Cell.Flags
	return t
}

// private gives a trial its own part of every folder that the workload names,
// so that it meets nothing of the trials before it. Trials of two runs have the same
// ids: files of a batch job say whose they are, those of a streaming one, and its
// checkpoints, do not.
func private(w *spec.Workload, id, submission string) *spec.Workload {
	out := *w
	files := id
	if w.Mode != spec.Batch && submission != "" {
		files += "-" + submission
	}
	if strings.HasPrefix(out.Cluster.Storage, "file://") {
		out.Cluster.Storage = strings.TrimRight(out.Cluster.Storage, "/") + "/" + files
	}
	out.Vertices = slices.Clone(w.Vertices)
	for i := range out.Vertices {
		if p := &out.Vertices[i].Params; p.Path != "" {
			p.Path = filepath.Join(p.Path, files)
		}
	}
	return &out
}

// streamEvents sends the events of a log as they come. The function it returns
// sends the rest and stops.
func streamEvents(log *timeline.Log, w *messages) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		order := reorder{log: log}
		send := func() error { return w.events(order.next(log.Now() - reorderWindow)) }
		timer := time.NewTimer(flushEvery)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
				if err := send(); err != nil {
					done <- err
					return
				}
				timer.Reset(flushEvery)
			case <-ctx.Done():
				done <- w.events(order.next(log.Now()))
				return
			}
		}
	}()
	return func() error {
		cancel()
		return <-done
	}
}

// messages writes the child's stdout; its methods may be called from any
// goroutine.
type messages struct {
	mu  sync.Mutex
	out *bufio.Writer
}

func (w *messages) send(m Message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Write(b)
	w.out.WriteByte('\n')
	return w.out.Flush()
}

func (w *messages) events(events []timeline.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range events {
		r := convert(e)
		b, err := json.Marshal(Message{Event: &r})
		if err != nil {
			return err
		}
		w.out.Write(b)
		w.out.WriteByte('\n')
	}
	return w.out.Flush()
}

func convert(e timeline.Event) result.Event {
	lag := int64(result.None)
	if e.Lag != timeline.None {
		lag = e.Lag.Microseconds()
	}
	return result.Event{
		TUs: e.T.Microseconds(), Kind: string(e.Kind), Vertex: e.Vertex, Subtask: e.Subtask, Attempt: e.Attempt, State: e.State,
		Checkpoint: e.Checkpoint, Bytes: e.Bytes, Records: e.Records, LagUs: lag, Reason: e.Reason, Detail: e.Detail,
	}
}
