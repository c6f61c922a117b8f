package worker

import (
	"context"
	"errors"
	"maps"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/scheduling/batch"
)

// others are the workers of a batch job that masters have told of, by identity. A task
// that outlives its master goes on to read from who held its input when it was deployed,
// whatever the next master calls them and whoever has their names by then.
//
// Those that the master before told of stay until this one has settled who goes on:
// workers join it one by one, and tasks go on meanwhile.
type others map[string]other

type other struct {
	name  batch.Worker // at the master of the epoch
	addr  string
	epoch int64
}

// learn takes all workers that a master has.
func (o others) learn(m control.Peers) {
	maps.DeleteFunc(o, func(_ string, x other) bool { return x.epoch == m.Epoch })
	for _, p := range m.Workers {
		o[p.Identity] = other{p.Name, p.Addr, m.Epoch}
	}
}

// settled: nobody whom this master does not know counts any more.
func (o others) settled(epoch int64) {
	maps.DeleteFunc(o, func(_ string, x other) bool { return x.epoch != epoch })
}

// newest is the epoch of the last master that told of workers.
func (o others) newest() (epoch int64) {
	for _, x := range o {
		epoch = max(epoch, x.epoch)
	}
	return epoch
}

// called is the identity of whom the newest master calls so; empty: it has no such one.
func (o others) called(name batch.Worker) string {
	epoch := o.newest()
	for id, x := range o {
		if x.name == name && x.epoch == epoch {
			return id
		}
	}
	return ""
}

// client returns the data connection to another worker.
func (w *Batch) client(ctx context.Context, id string) (*exchange.Client, error) {
	w.mu.Lock()
	x, ok := w.mu.others[id]
	w.mu.Unlock()
	err := errNoAddress
	if ok {
		var c *exchange.Client
		if c, err = w.peers.client(ctx, id, x.addr); err == nil {
			return c, nil
		}
	}
	return nil, &exchange.TransferError{Worker: id, Err: err}
}

var errNoAddress = errors.New("it is not among the workers of the master")

// nameOf is what the newest master calls a worker; empty: it has no such one.
func (w *Batch) nameOf(id string) batch.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	if x, ok := w.mu.others[id]; ok && x.epoch == w.mu.others.newest() {
		return x.name
	}
	return ""
}
