//go:build !linux

package trial

import "benchrun/harness/result"

// ownResources knows nothing here; absent is better than wrong.
func ownResources() *result.Resources { return &result.Resources{} }
