//go:build !unix

package result

import "os"

// lock does nothing where the system has no flock: two writers of one run are
// then the caller's fault.
func lock(*os.File) error { return nil }

// lockWait does nothing either.
func lockWait(*os.File, bool) error { return nil }
