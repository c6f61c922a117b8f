package worker

import (
	"errors"
	"fmt"
	"testing"

	"benchrun/runtime/exchange"
	"benchrun/runtime/scheduling/batch"
)

// The master learns who was at the other end of a connection that broke, by the name
// that it knows; a name of another master says nothing.
// Fails if classify does not name the worker, or if nameOf takes names of masters before.
func TestBrokenConnectionNamesTheOtherEnd(t *testing.T) {
	a := &attempt{w: &Batch{}}
	a.w.mu.others = others{"worker-0.a": {"worker-2", "x", 2}, "worker-1.b": {"worker-1", "y", 1}}
	for _, x := range []struct {
		err   error
		class batch.FailureClass
		peer  batch.Worker
	}{
		{&exchange.TransferError{Worker: "worker-0.a", Err: errors.New("no answer")}, batch.FailureTransfer, "worker-2"},
		{&exchange.TransferError{Worker: "worker-1.b", Err: errors.New("no answer")}, batch.FailureTransfer, ""},
		{&exchange.TransferError{Err: errNoAddress}, batch.FailureTransfer, ""},
		{errors.New("division by zero"), batch.FailureTask, ""},
	} {
		if class, _, peer := a.classify(fmt.Errorf("input a: %w", x.err)); class != x.class || peer != x.peer {
			t.Errorf("%v: class %v, other end %q", x.err, class, peer)
		}
	}
}
