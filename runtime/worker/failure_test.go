package worker

import (
	"errors"
	"fmt"
	"testing"

	"benchrun/runtime/exchange"
	"benchrun/runtime/scheduling/batch"
)

// The master learns who was at the other end of a connection that broke.
// Fails if classify does not name the worker.
func TestBrokenConnectionNamesTheOtherEnd(t *testing.T) {
	err := fmt.Errorf("input a: %w", &exchange.TransferError{Worker: "worker-1", Err: errors.New("no answer")})
	if class, _, peer := (&attempt{}).classify(err); class != batch.FailureTransfer || peer != "worker-1" {
		t.Errorf("class %v, other end %q", class, peer)
	}
	if class, _, peer := (&attempt{}).classify(errors.New("division by zero")); class != batch.FailureTask || peer != "" {
		t.Errorf("class %v, other end %q", class, peer)
	}
}
