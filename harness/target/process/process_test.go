package process_test

import (
	"context"
	"os"
	"testing"

	"go.uber.org/goleak"

	"benchrun/harness/target/process"
	"benchrun/harness/target/targettest"
)

const nodeVariable = "PROCESS_TEST_NODE"

// The test binary is also what the cluster's processes run.
var executable = process.Executable{Path: os.Args[0], Env: append(os.Environ(), nodeVariable+"=1")}

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(nodeVariable) != "":
		os.Exit(process.Main(context.Background(), os.Args[len(os.Args)-1], os.Stdin, os.Stderr))
	case os.Getenv(trialVariable) != "":
		os.Exit(trialProcess())
	}
	goleak.VerifyTestMain(m)
}

func TestConformance(t *testing.T) { targettest.Conformance(t, process.New(executable)) }
