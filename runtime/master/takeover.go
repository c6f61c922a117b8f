package master

import (
	"bytes"
	"encoding/gob"
	"fmt"
	"slices"
	"strings"
	"time"

	"benchrun/runtime/checkpoint"
	"benchrun/runtime/control"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/snapshot"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
	"benchrun/runtime/timeline"
)

// Takeover is what a master that follows another one finds in storage. All of
// it is from there: the old master is dead, or must be taken for dead.
type Takeover struct {
	Completed []checkpoint.Completed // oldest first
	Broken    []string               // folders of checkpoints that nobody will complete
	NextID    int64                  // above every id that was ever begun
}

// Inventory looks what checkpoints a store holds.
func Inventory(s storage.Store) (*Takeover, error) {
	names, err := s.List("")
	if err != nil {
		return nil, fmt.Errorf("look for checkpoints: %w", err)
	}
	complete := map[string]bool{}
	for _, n := range names {
		folder, file, ok := strings.Cut(n, "/")
		if _, _, known := snapshot.ParseFolder(folder); ok && known {
			complete[folder] = complete[folder] || file == snapshot.MetadataFile
		}
	}
	t := &Takeover{NextID: 1}
	for folder, ok := range complete {
		id, savepoint, _ := snapshot.ParseFolder(folder)
		t.NextID = max(t.NextID, id+1)
		switch {
		case !ok && !savepoint:
			t.Broken = append(t.Broken, folder)
		case ok && !savepoint:
			t.Completed = append(t.Completed, checkpoint.Completed{ID: id, Folder: folder})
		}
	}
	slices.Sort(t.Broken)
	slices.SortFunc(t.Completed, func(a, b checkpoint.Completed) int { return int(a.ID - b.ID) })
	return t, nil
}

// Start is how a job is started.
type Start struct {
	Origin   *Origin       // a checkpoint of another run to begin from, or nil
	Takeover *Takeover     // what the master before left, or nil
	Started  time.Duration // when the job first started; 0: now
	// The job is not scheduled before so many workers are there, so that all get
	// their part, or before Limit has passed.
	Workers int
	Limit   time.Duration
}

// waiting is a job that waits for its workers.
type waiting struct {
	workers int
	joined  []*worker
}

// Begin starts the job.
func (m *Master) Begin(s Start) {
	m.loop.post(func() {
		if m.started = s.Started; m.started == 0 {
			m.started = m.now()
		}
		if s.Takeover != nil {
			m.takeOver(s.Takeover)
		}
		if s.Origin != nil && (s.Takeover == nil || len(s.Takeover.Completed) == 0) {
			m.beginFrom(s.Origin)
		}
		m.waiting = &waiting{workers: s.Workers}
		m.waiting.joined = m.workers.inOrder()
		m.submitLimit.Reset(s.Limit)
		if len(m.waiting.joined) >= s.Workers {
			m.workersComplete()
		}
	})
}

func (m *Master) takeOver(t *Takeover) {
	for _, c := range t.Completed {
		m.checkpoint(checkpoint.Restored{ID: c.ID, Folder: c.Folder, Claimed: true})
	}
	m.deployedOnce = true // so that the timeline says what is restored, or that nothing is
	for _, folder := range t.Broken {
		m.background(func() {
			if err := m.cfg.Checkpoints.DeleteAll(folder); err != nil {
				id, _, _ := snapshot.ParseFolder(folder)
				m.note(timeline.CheckpointFailed, id, fmt.Sprintf("folder %s could not be deleted: %v", folder, err))
			}
		})
	}
}

// workersComplete shows the scheduler the workers that have joined, in the
// order of their indices, and then the job.
func (m *Master) workersComplete() {
	x := m.waiting
	if x == nil {
		return
	}
	m.waiting = nil
	m.submitLimit.Stop()
	slices.SortFunc(x.joined, func(a, b *worker) int { return a.index - b.index })
	for _, w := range x.joined {
		if !w.lost {
			m.schedule(scheduling.WorkerAdded{ID: w.id, Slots: w.slots})
		}
	}
	m.schedule(scheduling.Submit{})
}

// encodeResults gives the reports of tasks as a checkpoint keeps them.
func (m *Master) encodeResults(finished []task.ID) ([]byte, error) {
	var all []control.Report
	for _, id := range finished {
		all = append(all, m.results.of(id)...)
		all = append(all, m.results.reports[id]...)
	}
	if len(all) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(all); err != nil {
		return nil, fmt.Errorf("results of finished tasks: %w", err)
	}
	return b.Bytes(), nil
}

// adoptResults takes over the reports in a checkpoint that this master did not
// make.
func (m *Master) adoptResults(id int64, encoded []byte) error {
	if _, own := m.settled[id]; own || len(encoded) == 0 {
		return nil
	}
	var all []control.Report
	if err := gob.NewDecoder(bytes.NewReader(encoded)).Decode(&all); err != nil {
		return fmt.Errorf("results of finished tasks: %w", err)
	}
	m.settled[id] = nil
	for _, r := range all {
		m.settled[id] = append(m.settled[id], r.Task)
		if !slices.ContainsFunc(m.results.settled, func(x control.Report) bool { return x.Task == r.Task && x.Operator == r.Operator }) {
			m.results.settled = append(m.results.settled, r)
		}
	}
	return nil
}
