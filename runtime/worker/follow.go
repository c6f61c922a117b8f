package worker

import (
	"context"
	"errors"
	"time"

	"benchrun/runtime/control"
)

// Leader finds the master of a later epoch than one that is over. It waits until
// there is one.
type Leader func(ctx context.Context, after int64) (addr string, epoch int64, err error)

// retryJoin is the time between two attempts to join a master. It may be dying:
// perhaps another one leads soon.
const retryJoin = 20 * time.Millisecond

// leaderTrouble is how long a worker goes on when it cannot find out who leads: a
// file that cannot be read for a moment is not the end of what it holds.
const leaderTrouble = 10 * time.Second

// Follow works for one master after the other, until the context is over (no
// error) or none wants the worker. join works for a master until it is lost;
// served is false if it could not be reached. With again a master that was lost
// and still leads is joined again: it has taken the worker for dead.
func Follow(ctx context.Context, find Leader, again bool, join func(addr string, epoch int64) (served bool, err error)) error {
	after := int64(0)
	var r refusals
	var blind time.Time // since when nobody can be found
	pause := func() {
		select {
		case <-time.After(retryJoin):
		case <-ctx.Done():
		}
	}
	for {
		addr, epoch, err := find(ctx, after)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if blind.IsZero() {
				blind = time.Now()
			}
			if time.Since(blind) >= leaderTrouble {
				return err
			}
			pause()
			continue
		}
		blind = time.Time{}
		served, err := join(addr, epoch)
		switch {
		case ctx.Err() != nil:
			return nil
		case r.final(epoch, err):
			return err
		case served && again:
			after, r = epoch-1, refusals{}
		case served:
			after, r = epoch, refusals{}
		default:
			pause()
		}
	}
}

// refusals tells a master that does not want a worker from one that died during
// the handshake: both hang up, but the dead one does so once.
type refusals struct {
	epoch int64
	times int
}

// maxRefusals by one master are meant.
const maxRefusals = 3

// final takes the outcome of an attempt to join the master of an epoch, and
// tells whether to give up.
func (r *refusals) final(epoch int64, err error) bool {
	var refused *control.HandshakeError
	if !errors.As(err, &refused) || refused.Refusal == control.BadProtocol {
		return false
	}
	if epoch != r.epoch {
		*r = refusals{epoch: epoch}
	}
	r.times++
	return refused.Refusal == control.BadBuild || r.times >= maxRefusals
}
