package cluster_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"benchrun/runtime/cluster"
)

// The test binary is also what clusters of processes run.
const nodeVariable = "CLUSTER_TEST_NODE"

var nodes = cluster.Executable{Path: os.Args[0], Env: append(os.Environ(), nodeVariable+"=1")}

// No goroutine outlives a cluster.
func TestMain(m *testing.M) {
	if os.Getenv(nodeVariable) != "" {
		if err := stopWhereTold(os.Getenv(stopVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(cluster.Node(context.Background(), os.Args[len(os.Args)-1], os.Stdin, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}
