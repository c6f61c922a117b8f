package trial

import (
	"fmt"

	"benchrun/workloads/spec"
)

const fakeHead = `schema = 1
name = "fake"
[run]
trial-timeout = "5m"
[options]
"execution.checkpointing.interval" = "1 s"
"execution.checkpointing.unaligned.enabled" = true
[workload]
parallelism = 2
[[workload.vertex]]
id = "numbers"
operator = "sequence"
params = { rate = "100/s" }
[[workload.vertex]]
id = "out"
operator = "verify-sink"
[[workload.edge]]
from = "numbers"
to = "out"
partitioner = "rebalance"
`

func fakeWorkload(steps string, sets ...string) (*spec.Workload, error) {
	return fakeFile(fakeHead+steps, sets...)
}

func fakeFile(text string, sets ...string) (*spec.Workload, error) {
	f, err := spec.Parse("fake.toml", "/dir", []byte(text), sets)
	if err != nil {
		return nil, fmt.Errorf("test workload: %w", err)
	}
	return f.Resolve("default")
}
