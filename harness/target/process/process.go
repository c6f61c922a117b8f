package process

import (
	"context"
	"fmt"
	"io"
	"os"

	"benchrun/harness/target"
	"benchrun/harness/target/embedded"
	"benchrun/runtime/cluster"
	"benchrun/runtime/timeline"
)

// Executable is what the cluster's processes run.
type Executable = cluster.Executable

// Roles are the hidden commands, by which an executable knows what it is to be.
var Roles = []string{cluster.RoleMaster, cluster.RoleWorker}

// New returns the target. What its processes print goes to the stderr of this
// one.
func New(exe Executable) target.Target { return processes{exe} }

type processes struct{ exe Executable }

func (processes) Name() string { return "process" }
func (processes) Version() string {
	return fmt.Sprintf("multi-process runtime 1, protocol %d", cluster.NodeProtocol)
}

// Start implements target.Target.
func (p processes) Start(ctx context.Context, r target.Request, log *timeline.Log) (target.Job, error) {
	cfg, err := embedded.Config(r, log)
	if err != nil {
		return nil, err
	}
	inputs, err := embedded.LookAtInputs(r.Workload)
	if err != nil {
		return nil, err
	}
	c, err := cluster.StartProcesses(ctx, cfg, p.exe, os.Stderr)
	if err != nil {
		return nil, err
	}
	return embedded.Play(r.Workload, c, log, inputs), nil
}

// Main is a process of a cluster; it returns the exit status.
func Main(ctx context.Context, role string, stdin io.Reader, stderr io.Writer) int {
	return cluster.Node(ctx, role, stdin, stderr)
}
