package main

import (
	"benchrun/harness/result"
	"benchrun/harness/target"
	"benchrun/harness/target/embedded"
	"benchrun/harness/target/process"
	"benchrun/harness/trial"

	"github.com/spf13/cobra"
)

// targets lists the systems under test that this build can start; self is its
// executable.
func targets(self string) trial.Targets {
	return trial.Targets{
		"embedded": func() target.Target { return embedded.New() },
		"process":  func() target.Target { return process.New(process.Executable{Path: self}) },
	}
}

// nodeCommands are the processes of a cluster.
func (a *app) nodeCommands() []*cobra.Command {
	var out []*cobra.Command
	for _, role := range process.Roles {
		out = append(out, &cobra.Command{
			Use:    role,
			Short:  "be the " + role + " of a cluster; for the target \"process\", which talks to it",
			Hidden: true,
			Args:   noArguments,
			RunE: func(c *cobra.Command, _ []string) error {
				if status := process.Main(c.Context(), role, a.stdin, a.stderr); status != 0 {
					return exit(result.Exit(status), nil)
				}
				return nil
			},
		})
	}
	return out
}
