package worker

import (
	"errors"

	"benchrun/runtime/control"
)

// Refusals tells a master that does not want a worker from one that died during
// the handshake: both hang up, but the dead one does so once.
type Refusals struct {
	epoch int64
	times int
}

// maxRefusals by one master are meant.
const maxRefusals = 3

// Final takes the outcome of an attempt to join the master of an epoch, and
// tells whether to give up.
func (r *Refusals) Final(epoch int64, err error) bool {
	var refused *control.HandshakeError
	if !errors.As(err, &refused) || refused.Refusal == control.BadProtocol {
		return false
	}
	if epoch != r.epoch {
		*r = Refusals{epoch: epoch}
	}
	r.times++
	return refused.Refusal == control.BadBuild || r.times >= maxRefusals
}
