package cluster

import (
	"fmt"
	"time"

	"benchrun/runtime/failpoint"
)

// plant slows fault points of this process down. The function that it returns
// takes the delays away again.
func plant(delays map[string]time.Duration) (remove func(), err error) {
	var armed []func()
	remove = func() {
		for _, disarm := range armed {
			disarm()
		}
	}
	for name, d := range delays {
		p, err := failpoint.Lookup(name)
		if err != nil {
			remove()
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		armed = append(armed, p.Arm(failpoint.Delay(d)))
	}
	return remove, nil
}
