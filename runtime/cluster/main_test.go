package cluster_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No goroutine outlives a cluster.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
