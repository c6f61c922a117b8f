package checkpoint

import (
	"cmp"
	"slices"
	"time"
)

// request is a wish for a checkpoint.
type request struct {
	seq       uint64 // order of arrival
	token     uint64
	periodic  bool
	final     bool // for tasks that have reached the end of their data
	savepoint bool
	stop      bool
	drain     bool
	forced    bool
}

// rank orders requests: savepoints, then forced ones, then those of users, then
// older ones.
func rank(a, b *request) int {
	first := func(x, y bool) int {
		switch {
		case x == y:
			return 0
		case x:
			return -1
		}
		return 1
	}
	return cmp.Or(first(a.savepoint, b.savepoint), first(a.forced, b.forced),
		first(!a.periodic, !b.periodic), cmp.Compare(a.seq, b.seq))
}

// submit queues a request and looks at the queue.
func (c *Coordinator) submit(r *request) {
	c.seq++
	r.seq = c.seq
	if r.periodic && slices.ContainsFunc(c.queue, func(q *request) bool { return q.periodic }) {
		return
	}
	if len(c.queue) >= maxQueued && !c.queue[len(c.queue)-1].periodic {
		c.failRequest(r, fail(TooManyCheckpointRequests, nil))
		return
	}
	at, _ := slices.BinarySearchFunc(c.queue, r, rank)
	c.queue = slices.Insert(c.queue, at, r)
	if len(c.queue) > maxQueued {
		last := c.queue[len(c.queue)-1]
		c.queue = c.queue[:len(c.queue)-1]
		c.failRequest(last, fail(TooManyCheckpointRequests, nil))
	}
	c.poll()
}

// poll begins queued requests as far as the rules allow.
func (c *Coordinator) poll() {
	for !c.hold && c.trigger == nil && len(c.queue) > 0 && c.deletions() <= c.cfg.MaxConcurrent {
		head := c.queue[0]
		if len(c.pending) >= c.cfg.MaxConcurrent && !head.forced {
			return
		}
		c.queue = c.queue[1:]
		if head.periodic && !head.forced && c.completedOnce {
			if next := c.lastCompletion + c.cfg.MinPause; next > c.now {
				c.failRequest(head, fail(MinimumTimeBetweenCheckpoints, nil))
				if c.periodic && c.interval() > 0 {
					c.nextPeriodic = next
				}
				continue
			}
		}
		c.begin(head)
	}
}

// failRequest ends a request that has no id yet.
func (c *Coordinator) failRequest(r *request, err *Error) {
	c.reportFailure(0, r, nil, err)
	c.reply(r, Completed{}, err)
	c.ended(r)
}

// ended looks after what must happen once a request has failed.
func (c *Coordinator) ended(r *request) {
	if r.stop && c.resumeAfterStop && !c.shutdown {
		// The job goes on, and so must its periodic checkpoints.
		c.resumeAfterStop = false
		c.startPeriodic(c.now + c.interval())
	}
	if r.final && c.running && !c.shutdown {
		c.finalAt = c.now + finalRetry
	}
}

func (c *Coordinator) reply(r *request, result Completed, err error) {
	if r.token == 0 {
		return
	}
	e := Reply{Token: r.token, Result: result}
	if err != nil {
		e.Err = err
	}
	c.emit(e)
	r.token = 0
}

// never is a time that does not come.
const never = time.Duration(-1)
