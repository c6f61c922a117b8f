//go:build !linux

package probe

import "benchrun/harness/result"

// describe knows no more than the Go runtime does.
func describe(*result.Machine, string) {}
