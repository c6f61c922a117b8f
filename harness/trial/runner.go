package trial

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"benchrun/harness/result"
	"benchrun/runtime/options"
)

// Runner runs trials in child processes and keeps their files. Its methods are
// for one goroutine.
type Runner struct {
	Folder *result.Folder
	Keep   bool          // keep the temporary folders of all trials
	Grace  time.Duration // from asking a child to stop to killing it; 0: DefaultGrace
	Notify func(Message) // hello and phases, as they come; may be nil

	kept   string                              // temporary folder of the newest trial that was not ok
	create func(path string) (*os.File, error) // nil: createNew
}

// createNew makes a file, and never takes that of another trial.
func createNew(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// DefaultGrace covers the child's own clean-up.
const DefaultGrace = 15 * time.Second

// Task is one trial to run.
type Task struct {
	Exe     string   // of the build
	Args    []string // before the protocol starts; empty: "trial"
	Env     []string // empty: this process's
	Request Request  // Protocol, Folder are filled in
	Timeout time.Duration
	// Sweep removes what a child that was killed has left outside of its temporary
	// folder; may be nil.
	Sweep func() error
	// Identity is what is known before the trial: it goes into the line of a
	// child that reports none.
	Workload string
	Flags    map[string]any
	Target   string
}

// Run runs one trial to its end and returns its line. The end of ctx stops the
// child and makes the trial interrupted. The error is ErrProtocol, or that of
// a file of the run folder; then there is no line.
func (r *Runner) Run(ctx context.Context, task Task) (*result.Trial, error) {
	id := task.Request.Trial
	task.Request.Protocol = Protocol
	task.Request.Folder = r.Folder.Path("tmp", id)
	if err := os.MkdirAll(task.Request.Folder, 0o777); err != nil {
		return nil, fmt.Errorf("trial %s: %w", id, err)
	}
	create := r.create
	if create == nil {
		create = createNew
	}
	log, err := create(r.Folder.Path("logs", id+".txt"))
	if err != nil {
		return nil, fmt.Errorf("trial %s: %w", id, err)
	}
	defer log.Close()
	events, err := create(r.Folder.Path("events", id+".jsonl"))
	if err != nil {
		return nil, fmt.Errorf("trial %s: %w", id, err)
	}
	defer events.Close()

	c := &child{task: task, log: log, events: bufio.NewWriterSize(events, 64<<10), notify: r.Notify, grace: r.Grace, broken: make(chan struct{})}
	if c.grace == 0 {
		c.grace = DefaultGrace
	}
	started := time.Now()
	t, err := c.run(ctx)
	if err != nil {
		os.RemoveAll(task.Request.Folder)
		return nil, fmt.Errorf("trial %s: %w", id, err)
	}
	if c.trial == nil && task.Sweep != nil && !r.Keep {
		if err := task.Sweep(); err != nil {
			fmt.Fprintf(log, "run: what the trial has left: %v\n", err)
		}
	}
	t.Trial, t.Workload, t.Cell, t.Build, t.Block, t.Warmup, t.Order = id, task.Workload, task.Request.Cell, task.Request.Build, task.Request.Block, task.Request.Warmup, task.Request.Order
	if len(t.Flags) == 0 {
		t.Flags = task.Flags
	}
	if t.Flags == nil {
		t.Flags = map[string]any{}
	}
	if t.Options == nil {
		t.Options = map[string]any{}
	}
	if t.Target == "" {
		t.Target = task.Target
	}
	t.Started, t.WallS = started.UTC(), time.Since(started).Seconds()
	if err := c.events.Flush(); err != nil {
		return nil, fmt.Errorf("trial %s: events: %w", id, err)
	}
	if err := events.Sync(); err != nil {
		return nil, fmt.Errorf("trial %s: events: %w", id, err)
	}
	return t, r.tidy(task.Request.Folder, t.Outcome)
}

// tidy removes the temporary folder of a trial, or keeps it instead of the one
// kept before.
func (r *Runner) tidy(dir string, o result.Outcome) error {
	if r.Keep {
		return nil
	}
	if o != result.OK && o != result.Unsupported {
		r.kept, dir = dir, r.kept
	}
	if dir == "" {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("temporary folder: %w", err)
	}
	return nil
}

// maxChatter bounds the lines on a child's stdout that are no messages.
const maxChatter = 100

// child is one running child process.
type child struct {
	task   Task
	log    *os.File
	events *bufio.Writer
	notify func(Message)
	grace  time.Duration

	mu struct {
		sync.Mutex
		phase string
	}
	hello    *Hello
	trial    *result.Trial
	refused  string
	chatter  int           // lines that are no messages
	writeErr error         // of the events' file
	broken   chan struct{} // closed with the first writeErr
}

func (c *child) run(ctx context.Context) (*result.Trial, error) {
	// The kernel's death signal is tied to the thread that started the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	args := c.task.Args
	if len(args) == 0 {
		args = []string{"trial"}
	}
	cmd := exec.Command(c.task.Exe, args...)
	cmd.Env, cmd.Stderr = c.task.Env, c.log
	isolate(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return &result.Trial{Outcome: result.Failed, Reason: fmt.Sprintf("the build %s could not be started: %v", c.task.Request.Build, err), Phase: "start"}, nil
	}
	read := make(chan struct{})
	go func() { // ends with the last message, or with the child's stdout
		defer close(read)
		c.read(stdout)
	}()
	request, err := json.Marshal(c.task.Request)
	if err == nil {
		_, err = stdin.Write(append(request, '\n'))
	}
	if err != nil {
		fmt.Fprintf(c.log, "run: sending the request: %v\n", err)
	}

	why := c.await(ctx, read, stdin)
	stdin.Close()
	return c.conclude(ctx, why, c.reap(cmd, read))
}

// reap ends whatever is left of the child's process group and returns the
// child's exit status.
func (c *child) reap(cmd *exec.Cmd, read <-chan struct{}) error {
	select {
	case <-read:
	default: // it had its time: what it has written so far is still read
		killGroup(cmd)
		<-read
		return cmd.Wait()
	}
	exit := make(chan error, 1)
	go func() { exit <- cmd.Wait() }()
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case err := <-exit:
		killGroup(cmd)
		return err
	case <-timer.C:
		killGroup(cmd)
		return <-exit
	}
}

// errOverdue is the cause when a child outlives the trial's time.
var errOverdue = errors.New("overdue")

// await blocks until the child closes its stdout, or until it had to be
// stopped; then it tells why.
func (c *child) await(ctx context.Context, read <-chan struct{}, stdin io.Closer) error {
	// The child keeps the trial's time itself; this is for one that hangs.
	overdue := time.NewTimer(c.task.Timeout + c.grace)
	defer overdue.Stop()
	select {
	case <-read:
		return nil
	case <-overdue.C:
		return errOverdue
	case <-c.broken: // a trial without its timeline, or none at all: nothing is worth waiting for
		c.grace = min(c.grace, time.Second)
	case <-ctx.Done():
	}
	stdin.Close() // asks the child to stop
	grace := time.NewTimer(c.grace)
	defer grace.Stop()
	select {
	case <-read:
	case <-grace.C:
	}
	return context.Cause(ctx) // nil if the events could not be written
}

// read takes the child's messages.
func (c *child) read(stdout io.Reader) {
	r := bufio.NewReaderSize(stdout, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 && err == nil {
			c.message(line)
		}
		if err != nil || c.trial != nil {
			return
		}
	}
}

func (c *child) message(line []byte) {
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		c.chatter++
		switch {
		case c.chatter < maxChatter:
			fmt.Fprintf(c.log, "run: not a message: %s", line)
		case c.chatter == maxChatter && c.writeErr == nil: // it is no trial, or talks where it must not
			c.refused = fmt.Sprintf("it wrote %d lines that are no messages", maxChatter)
			close(c.broken)
		}
		return
	}
	switch {
	case m.Event != nil:
		b, err := json.Marshal(m.Event)
		if err == nil {
			c.events.Write(b)
			err = c.events.WriteByte('\n')
		}
		if err != nil && c.writeErr == nil {
			c.writeErr = err
			if c.refused == "" {
				close(c.broken)
			}
		}
		return
	case m.Hello != nil:
		c.hello = m.Hello
	case m.Phase != "":
		c.mu.Lock()
		c.mu.phase = m.Phase
		c.mu.Unlock()
	case m.Trial != nil:
		c.trial = m.Trial
	case m.Error != "":
		c.refused = m.Error
	}
	if c.notify != nil {
		c.notify(m)
	}
}

// conclude turns what the child did into the trial's line.
func (c *child) conclude(ctx context.Context, why, exit error) (*result.Trial, error) {
	if c.writeErr != nil {
		return nil, fmt.Errorf("events: %w", c.writeErr)
	}
	if c.refused != "" || c.hello != nil && c.hello.Protocol != Protocol {
		return nil, fmt.Errorf("build %s (%s): %w: %s", c.task.Request.Build, c.task.Exe, ErrProtocol, c.refused)
	}
	if t := c.trial; t != nil {
		if t.Outcome == result.TrialInterrupted && ctx.Err() != nil {
			t.Reason = context.Cause(ctx).Error()
		}
		return t, nil
	}
	t := &result.Trial{Outcome: result.Failed}
	c.mu.Lock()
	t.Phase = c.mu.phase
	c.mu.Unlock()
	if t.Phase == "" {
		t.Phase = "start"
	}
	if c.hello != nil {
		t.Revision = c.hello.Revision
	}
	switch {
	case errors.Is(why, errOverdue):
		t.Outcome = result.Timeout
		t.Reason = fmt.Sprintf("the trial-timeout of %s passed and the trial did not end by itself; it was killed", options.FormatDuration(c.task.Timeout))
	case why != nil:
		t.Outcome, t.Reason = result.TrialInterrupted, why.Error()
	case c.hello == nil:
		return nil, fmt.Errorf("build %s (%s): %w: it answered nothing and ended with %s%s", c.task.Request.Build, c.task.Exe, ErrProtocol, status(exit), c.lastWords())
	default:
		t.Reason = fmt.Sprintf("the trial's process ended without a result: %s%s", status(exit), c.lastWords())
	}
	return t, nil
}

func status(exit error) string {
	if exit == nil {
		return "exit status 0"
	}
	return exit.Error()
}

// lastWords finds the line of the log that says most about a crash.
func (c *child) lastWords() string {
	b, err := os.ReadFile(c.log.Name())
	if err != nil {
		return ""
	}
	last := ""
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			last = line
			break
		}
		if line != "" {
			last = line
		}
	}
	if last == "" {
		return ""
	}
	if len(last) > 300 {
		last = last[:300] + "..."
	}
	return fmt.Sprintf(": %s (see %s)", last, filepath.Join("logs", filepath.Base(c.log.Name())))
}
