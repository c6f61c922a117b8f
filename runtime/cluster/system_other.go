//go:build !unix

package cluster

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

var errNoProcesses = errors.New("clusters of several processes need process groups and file locks, which this system has not")

func systemClock() (time.Duration, bool)      { return 0, false }
func isolate(*exec.Cmd)                       {}
func runningImage(exe string) string          { return exe }
func diskBytes(int) (read, written *int64)    { return nil, nil }
func lockExclusive(*os.File) (bool, error)    { return false, errNoProcesses }
func killGroup(cmd *exec.Cmd) error           { return cmd.Process.Kill() }
func stopGroup(*exec.Cmd) error               { return errNoProcesses }
func resumeGroup(*exec.Cmd) error             { return errNoProcesses }
func peakMemory(*os.ProcessState) (rss int64) { return 0 }
