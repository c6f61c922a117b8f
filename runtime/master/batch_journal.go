package master

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/options"
	"benchrun/runtime/scheduling/batch"
	"benchrun/runtime/timeline"
)

// journal is the job's log in the hands of the loop. Everything that touches the
// disk is done beside the loop; what is appended meanwhile waits.
type journal struct {
	m      *Batch
	folder *mortalFolder
	store  joblog.Store // nil: there is none now
	opened joblog.Store // beside the loop, which has not taken it yet
	busy   bool         // it is being opened or closed
	after  []func()     // what is to be done then
	closed bool
	size   int64  // of what is replayed
	torn   string // what was cut off of it
	had    bool   // there was something to replay when it was opened

	appended, durable, hurried uint64 // numbers of events of this store

	failing struct { // by what is written
		sync.Mutex
		what map[string]bool
	}
}

// What the journal writes, as the timeline names it.
const (
	writesEvents = "events"
	writesResult = "result"
	takesBack    = "output" // of masters before
)

// openJournal opens the log if the job has one: with recovery, or if an earlier
// run with recovery left one.
func openJournal(m *Batch) (*journal, error) {
	j := &journal{m: m, folder: &mortalFolder{Folder: m.cfg.Log}}
	j.failing.what = map[string]bool{}
	if !options.BatchJobRecovery.Get(m.cfg.Values) {
		names, err := m.cfg.Log.Names()
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return j, nil
		}
	}
	store, err := j.open()
	if err != nil && m.cfg.FromScratch && Unreadable(err) {
		e := timeline.Of(timeline.EventReplayed)
		e.Records, e.Reason = 0, fmt.Sprintf("begun from scratch: %v", err)
		if err = joblog.Wipe(j.folder); err == nil {
			store, err = j.open()
		}
		if err == nil {
			m.cfg.Timeline.Add(e)
		}
	}
	if err != nil {
		return nil, err
	}
	j.set(store)
	j.had = store.HasEvents()
	return j, nil
}

// Unreadable tells whether an error of NewBatch is about a log that no master of
// this job can read, however often it is tried.
func Unreadable(err error) bool {
	var damaged *joblog.DamagedError
	var foreign *joblog.ForeignError
	var version *joblog.VersionError
	return errors.As(err, &damaged) || errors.As(err, &foreign) || errors.As(err, &version)
}

func (j *journal) open() (joblog.Store, error) {
	v := j.m.cfg.Values
	var store joblog.Store
	c := joblog.Config{
		Job: j.m.cfg.Job, Epoch: uint64(j.m.cfg.Epoch), BufferSize: int(options.JobEventBufferSize.Get(v)),
		FlushInterval: options.JobEventFlushInterval.Get(v), Policy: joblog.SyncPolicy(options.JobEventSyncPolicy.Get(v)),
		Durable: func(n uint64) {
			j.m.loop.post(func() {
				if j.store != store {
					return // it was cleared since
				}
				j.durable = n
				j.m.acknowledge(n)
				j.m.step(batch.LogDurable{Number: n})
			})
		},
		Pressure: func(on bool) { j.m.schedule(batch.LogPressure{On: on}) },
		Trouble:  func(_ time.Time, cause error) { j.trouble(writesEvents, cause) },
	}
	if names, err := j.folder.Names(); err == nil {
		j.size = 0
		for _, n := range names {
			if b, err := j.folder.ReadFile(n); err == nil {
				j.size += int64(len(b))
			}
		}
	}
	var err error
	var torn string
	if j.m.faithful {
		store, err = joblog.OpenFaithful(j.folder, c)
	} else {
		var h *joblog.Hardened
		if h, err = joblog.OpenHardened(j.folder, c); err == nil {
			store, torn = h, h.Torn()
		}
	}
	if err != nil {
		return nil, err
	}
	j.torn = torn
	return store, nil
}

func (j *journal) set(s joblog.Store) {
	j.store = s
	j.appended, j.durable, j.hurried = 0, 0, 0
	j.m.shared.Lock()
	j.m.shared.store = s
	j.m.shared.Unlock()
}

// hasEvents tells whether a master before has left something.
func (j *journal) hasEvents() bool { return j.had }

// do runs something on the loop when the store is there.
func (j *journal) do(fn func()) {
	if j.busy {
		j.after = append(j.after, fn)
		return
	}
	fn()
}

// beside runs what touches the disk beside the loop, and then what waited.
func (j *journal) beside(disk func() error, then func(error)) {
	j.busy = true
	j.m.work.Go(func() {
		err := disk()
		j.m.loop.post(func() {
			j.busy = false
			then(err)
			for len(j.after) > 0 && !j.busy {
				fn := j.after[0]
				j.after = j.after[1:]
				fn()
			}
		})
	})
}

func (j *journal) append(e joblog.Entry) {
	j.do(func() {
		if j.store == nil {
			return
		}
		n := j.store.Append(e)
		j.appended = n
		if x, ok := e.Event.(joblog.VertexFinished); ok {
			j.m.unrecorded = append(j.m.unrecorded, recorded{n, x.Attempt, batch.Worker(x.Worker)})
		}
	})
}

// recorded is a finished attempt with the number of its event.
type recorded struct {
	number uint64
	id     joblog.AttemptID
	worker batch.Worker
}

// acknowledge tells workers which ends the log has.
func (m *Batch) acknowledge(durable uint64) {
	by := map[batch.Worker][]joblog.AttemptID{}
	n := 0
	for n < len(m.unrecorded) && m.unrecorded[n].number <= durable {
		x := m.unrecorded[n]
		by[x.worker] = append(by[x.worker], x.id)
		n++
	}
	m.unrecorded = m.unrecorded[n:]
	for w, ids := range by {
		m.workers.send(w, control.Recorded{Epoch: m.cfg.Epoch, Attempts: ids})
	}
}

// hurry makes durable now, instead of after the log's interval, what the job waits
// for. With the policy none that is a flush, which the end of a vertex is anyway.
func (j *journal) hurry() {
	if j.store == nil || j.busy || j.appended <= max(j.durable, j.hurried) ||
		j.m.faithful || joblog.SyncPolicy(options.JobEventSyncPolicy.Get(j.m.cfg.Values)) == joblog.SyncNone {
		return
	}
	j.hurried = j.appended
	store := j.store
	j.m.work.Go(func() { _ = store.Sync(j.m.ctx) }) // Durable tells when it is; Trouble if it cannot be
}

// trouble tells the timeline when writing begins to fail and when it works again.
// Safe from any goroutine.
func (j *journal) trouble(what string, cause error) {
	j.failing.Lock()
	changed := j.failing.what[what] != (cause != nil)
	j.failing.what[what] = cause != nil
	j.failing.Unlock()
	if !changed || j.folder.dead.Load() {
		return
	}
	e := timeline.Job(timeline.Protected, "")
	if cause != nil {
		e = timeline.Job(timeline.Unprotected, cause.Error())
	}
	e.Detail = what
	j.m.cfg.Timeline.Add(e)
}

// insistLimit bounds how long something is tried that does not go on without.
const insistLimit = 30 * time.Second

// insist is beside for what must be on the disk: while it fails it is shown and
// tried again after the log's interval, for a disk that is full or away may come
// back.
func (j *journal) insist(what string, disk func() error, then func(error)) {
	pause := options.JobEventFlushInterval.Get(j.m.cfg.Values)
	j.beside(func() error {
		begin := time.Now()
		for {
			err := j.folder.err()
			if err != nil {
				return err
			}
			err = disk()
			if err != nil && time.Since(begin) < insistLimit {
				j.trouble(what, err)
				select {
				case <-time.After(pause):
					continue
				case <-j.m.ctx.Done():
				}
			}
			if err == nil {
				j.trouble(what, nil)
			}
			return err
		}
	}, then)
}

// keepResult makes durable how the job has ended.
func (j *journal) keepResult(r joblog.JobFinished) {
	j.do(func() {
		j.insist(writesResult, func() error {
			if err := j.m.mayAct(); err != nil {
				return err
			}
			return j.m.cfg.Result.Write(r)
		}, j.m.resultKept)
	})
}

// replay reads the log beside the loop.
func (j *journal) replay() {
	j.do(func() {
		var events []joblog.Event
		store := j.store
		j.beside(func() error {
			return store.Replay(func(e joblog.Event) error {
				events = append(events, e)
				return nil
			})
		}, func(err error) {
			j.m.read(events)
			for w := range j.m.dead {
				j.m.step(batch.WorkerLost{ID: w, Err: errProcessEnded})
			}
			j.m.replayed = true
			replayed := func() { j.m.step(batch.Replayed{Events: events, Err: err}) }
			if !slices.ContainsFunc(events, func(e joblog.Event) bool { return e.Kind() == joblog.KindJobFinished }) {
				replayed()
				return
			}
			j.m.uponJoin(replayed) // a job that is over has workers that may not know
		})
	})
}

// read follows what the log says of finished tasks.
func (m *Batch) read(events []joblog.Event) {
	winners := map[joblog.TaskID]joblog.AttemptID{}
	void := func(t joblog.TaskID) {
		delete(winners, t)
		m.forgetTask(t)
	}
	for _, e := range events {
		switch e := e.(type) {
		case joblog.VertexFinished:
			winners[e.Attempt.TaskID] = e.Attempt
			m.counted(e.Attempt.TaskID, e.Records)
		case joblog.VerticesReset:
			for _, t := range e.Tasks {
				void(t)
			}
		case joblog.EpochStarted:
			kept := make(map[joblog.AttemptID]bool, len(e.Kept))
			for _, a := range e.Kept {
				kept[a] = true
			}
			for t, a := range winners {
				if !kept[a] {
					void(t)
				}
			}
		}
	}
}

// clear empties the log and opens it anew.
func (j *journal) clear() {
	j.do(func() {
		old := j.store
		j.set(nil)
		j.insist(writesEvents, func() (err error) {
			if old != nil {
				_ = old.Close(true) // what it leaves is wiped, whatever its end was like
				old = nil
			}
			if err = joblog.Wipe(j.folder); err == nil && options.BatchJobRecovery.Get(j.m.cfg.Values) {
				var store joblog.Store
				if store, err = j.open(); err == nil {
					j.opened = store
				}
			}
			return err
		}, func(err error) {
			store := j.opened
			j.opened = nil
			if err != nil {
				j.m.step(batch.GlobalFailure{Err: fmt.Errorf("begin the job log anew: %w", err), Fatal: true})
				return
			}
			j.set(store)
		})
	})
}

// close ends the log. It may be called when the loop is over.
func (j *journal) close(clear bool, then func(error)) {
	if j.store == nil || j.closed {
		then(nil)
		return
	}
	j.closed = true
	store := j.store
	j.m.shared.Lock()
	j.m.shared.past = addStats(j.m.shared.past, store.Stats())
	j.m.shared.store = nil
	j.m.shared.Unlock()
	j.store = nil
	select {
	case <-j.m.loop.done:
		then(store.Close(clear))
	default:
		j.beside(func() error { return store.Close(clear) }, then)
	}
}

// closeOpened ends a log that was opened when the loop was over. Nothing works for
// the master any more.
func (j *journal) closeOpened() {
	if j.opened != nil {
		_ = j.opened.Close(false) // nothing was written to it
		j.opened = nil
	}
}

func (j *journal) kill() { j.folder.dead.Store(true) }

func addStats(f control.BatchFigures, s joblog.Stats) control.BatchFigures {
	f.HookTime += s.HookTime
	f.WriterCPU += s.WriterCPU
	f.LogBytes += s.Bytes
	f.Flushes += s.Flushes
	f.GapTasks = s.GapTasks
	return f
}
