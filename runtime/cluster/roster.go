package cluster

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/worker"
)

// roster lists the workers of a cluster. The zero value is empty; its lock is a
// leaf.
type roster[W comparable] struct {
	mu    sync.Mutex
	live  []W // in the order in which they joined
	dying map[W]bool
	made  int
	past  Status // sink records and bytes of those that are gone
}

// next is the index of one that is about to be started.
func (r *roster[W]) next() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.made++
	return r.made - 1
}

// size is how many there ever were.
func (r *roster[W]) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.made
}

func (r *roster[W]) join(w W) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live = append(r.live, w)
}

// claim lets one caller end a worker, and replace it; false: another one does, or it
// is gone.
func (r *roster[W]) claim(w W) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dying[w] || !slices.Contains(r.live, w) {
		return false
	}
	if r.dying == nil {
		r.dying = map[W]bool{}
	}
	r.dying[w] = true
	return true
}

// leave takes one that is gone off the list. Its counters are added once.
func (r *roster[W]) leave(w W, last control.Load) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.dying, w)
	if i := slices.Index(r.live, w); i >= 0 {
		r.live = slices.Delete(r.live, i, i+1)
		r.past.SinkRecords += last.SinkRecords
		r.past.NetBytes += last.NetBytes
	}
}

func (r *roster[W]) all() []W {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.live)
}

// status is what workers that are gone have counted. Others are to be added.
func (r *roster[W]) status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.past
}

// add adds the counters of a live worker.
func (s *Status) add(l control.Load) {
	s.SinkRecords += l.SinkRecords
	s.QueuedBytes += l.QueuedBytes
	s.Restored += l.Restored
	s.Drained += l.Drained
	s.NetBytes += l.NetBytes
	if l.Tasks > 0 {
		s.WorkersWithTasks++
	}
}

// counters is what a worker tells of itself.
func counters(l worker.Load, netBytes int64) control.Load {
	return control.Load{
		Tasks: l.Tasks, SinkRecords: l.SinkRecords, QueuedBytes: l.QueuedBytes, Restored: l.Restored, Drained: l.Drained, NetBytes: netBytes,
	}
}

// victim finds the i-th of the live workers that run a task; between two
// executions, when none does, any of them may be the one.
func victim[W any](live []W, tasks func(k int) int, i int) (w W, err error) {
	var busy []W
	for k, x := range live {
		if tasks(k) > 0 {
			busy = append(busy, x)
		}
	}
	if len(busy) == 0 {
		busy = live
	}
	if i < 0 || i >= len(busy) {
		return w, fmt.Errorf("there is no worker %d: %d live workers run a task of the job", i, len(busy))
	}
	return busy[i], nil
}

// embeddedWorker is a worker that lives in this process.
type embeddedWorker interface {
	comparable
	load(queued bool) control.Load
	Kill()
	Stop()
	Freeze(time.Duration)
}

// crew is the roster of a cluster in one process.
type crew[W embeddedWorker] struct{ roster[W] }

func (c *crew[W]) victim(i int) (W, error) {
	live := c.all()
	return victim(live, func(k int) int { return live[k].load(false).Tasks }, i)
}

// kill ends the i-th busy worker as if its process had died; struck is called at
// that instant.
func (c *crew[W]) kill(i int, struck func()) (W, error) {
	w, err := c.victim(i)
	if err != nil {
		return w, err
	}
	if !c.claim(w) {
		return w, fmt.Errorf("worker %d is being killed already", i)
	}
	struck()
	w.Kill()
	c.leave(w, w.load(false))
	return w, nil
}

// freeze stops the i-th busy worker for a time.
func (c *crew[W]) freeze(i int, d time.Duration, struck func()) error {
	w, err := c.victim(i)
	if err != nil {
		return err
	}
	struck()
	w.Freeze(d)
	return nil
}

// status sums over the workers.
func (c *crew[W]) status() Status {
	s := c.roster.status()
	for _, w := range c.all() {
		s.add(w.load(true))
	}
	return s
}

// stop ends all in order.
func (c *crew[W]) stop() {
	c.mu.Lock()
	live := c.live
	c.live = nil
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, w := range live {
		wg.Go(w.Stop)
	}
	wg.Wait()
}
