package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"benchrun/harness/result"
	"benchrun/harness/trial"
	"benchrun/reports/verdict"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // ends with the process
		<-signals
		cancel(trial.ErrInterrupted)
		<-signals
		fmt.Fprintln(os.Stderr, "benchrun: stopped at once")
		os.Exit(int(result.ExitInterrupted)) // the trial's process dies with this one
	}()
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchrun:", err)
		os.Exit(int(result.ExitUsage))
	}
	a := &app{
		args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, self: self,
		targets: targets(self), render: render, judge: verdict.Decide, terminal: isTerminal(os.Stderr),
	}
	os.Exit(int(a.main(ctx)))
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && os.Getenv("TERM") != ""
}
