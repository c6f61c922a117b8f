package main

import (
	"embed"
	"fmt"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"benchrun/harness/result"
	"benchrun/harness/trial"

	"github.com/spf13/cobra"
)

// version is set by the linker in a release.
var version = "0.1.0-dev"

func goVersion() string { return runtime.Version() }

// revision names the source that this executable was built from; where the
// build does not know it, the executable itself.
func (a *app) revision() (revision string, dirty bool) {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				revision = s.Value
			case "vcs.modified":
				dirty = s.Value == "true"
			}
		}
	}
	if revision != "" {
		return revision, dirty
	}
	sum, err := trial.HashFile(a.self)
	if err != nil {
		return "unknown", false
	}
	return "binary-" + sum[:12], false
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "print the version",
		Example: "  benchrun version --json",
		Args:    noArguments,
		RunE: func(*cobra.Command, []string) error {
			t := a.tool()
			var names []string
			for n := range a.targets {
				names = append(names, n)
			}
			slices.Sort(names)
			if asJSON {
				return a.document(map[string]any{"version": t.Version, "revision": t.Revision, "dirty": t.Dirty, "go": t.Go, "os": runtime.GOOS, "arch": runtime.GOARCH,
					"schema": result.Schema, "protocol": trial.Protocol, "targets": names})
			}
			dirty := ""
			if t.Dirty {
				dirty = " with changes"
			}
			_, err := fmt.Fprintf(a.stdout, "benchrun %s (%s%s, %s %s/%s)\ntargets: %s\n", t.Version, t.Revision, dirty, t.Go, runtime.GOOS, runtime.GOARCH, strings.Join(names, ", "))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return c
}

//go:embed samples/*.toml
var samples embed.FS

// sampleKinds lists the samples; the first is the default.
var sampleKinds = []string{"rescale", "failover", "wordcount", "batch"}

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "init [" + strings.Join(sampleKinds, "|") + "]",
		Short:     "print a commented sample workload",
		Long:      "Prints a commented workload file to start from. It runs as it is.",
		Example:   "  benchrun init > my.toml\n  benchrun run my.toml",
		ValidArgs: sampleKinds,
		Args:      cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			kind := sampleKinds[0]
			if len(args) > 0 {
				kind = args[0]
			}
			b, err := samples.ReadFile(path.Join("samples", kind+".toml"))
			if err != nil {
				return fmt.Errorf("there is no sample %q%s", kind, nearest(kind, sampleKinds))
			}
			_, err = a.stdout.Write(b)
			return err
		},
	}
}

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:       "completion bash|zsh|fish",
		Short:     "print a script that completes commands and flags",
		Example:   "  source <(benchrun completion bash)",
		ValidArgs: shells,
		Args:      needs("one of bash, zsh, fish"),
		RunE: func(c *cobra.Command, args []string) error {
			switch args[0] {
			case "bash":
				return c.Root().GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return c.Root().GenZshCompletion(a.stdout)
			case "fish":
				return c.Root().GenFishCompletion(a.stdout, true)
			}
			return fmt.Errorf("there is no completion for %q%s", args[0], nearest(args[0], shells))
		},
	}
}

// trialCommand is the child's side of a run.
func (a *app) trialCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "trial",
		Short:  "run one trial; for run, which talks to it over stdin and stdout",
		Hidden: true,
		Args:   noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if a.stdout == os.Stdout {
				os.Stdout = os.Stderr // what the job prints must not get between the messages
			}
			revision, _ := a.revision()
			if status := trial.Child(c.Context(), a.stdin, a.stdout, a.stderr, a.targets, revision); status != 0 {
				return exit(result.Exit(status), nil)
			}
			return nil
		},
	}
}
