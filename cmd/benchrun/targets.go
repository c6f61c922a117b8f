package main

import (
	"benchrun/harness/target"
	"benchrun/harness/target/embedded"
	"benchrun/harness/trial"
)

// targets lists the systems under test that this build can start.
func targets() trial.Targets {
	return trial.Targets{
		"embedded": func() target.Target { return embedded.New() },
	}
}
