package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"benchrun/runtime/options"
	"benchrun/workloads/spec"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagError says what is wrong with the flags of a command, and the nearest right
// thing.
func flagError(c *cobra.Command, err error) error {
	see := fmt.Sprintf("\nSee: %s --help", c.CommandPath())
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("--%s %q: %w%s", bad.GetFlag().Name, bad.GetValue(), valueError(bad.Unwrap()), see)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if near := options.Nearest(unknown.GetSpecifiedName(), names); near != "" {
			return fmt.Errorf("%w; did you mean --%s?%s", err, near, see)
		}
	}
	return fmt.Errorf("%w%s", err, see)
}

// valueError puts what the parsers of numbers say into words.
func valueError(err error) error {
	number, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err
	}
	switch {
	case errors.Is(number.Err, strconv.ErrRange):
		return errors.New("is too large")
	case number.Func == "ParseUint":
		return errors.New("must be a whole number from 0")
	case number.Func == "ParseBool":
		return errors.New("must be true or false")
	}
	return errors.New("must be a whole number")
}

// noArguments refuses arguments of a command that takes none.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no argument, and there is %q\nSee: %s --help", c.CommandPath(), args[0], c.CommandPath())
	}
	return nil
}

// blame names the flags that are overrides of keys by themselves: a problem with
// one is not one of --set.
func (s *selection) blame(ps spec.Problems) {
	flags := map[string]string{}
	if s.settings.Repeats != nil {
		flags["run.repeats"] = "repeats"
	}
	if s.settings.Warmup != nil {
		flags["run.warmup"] = "warmup"
	}
	if s.settings.Seed != nil {
		flags["run.seed"] = "seed"
	}
	if s.settings.Target != "" {
		flags["cluster.target"] = "target"
	}
	for i := range ps {
		p := &ps[i]
		name, ok := flags[p.Key]
		if !ok || p.File != "--set" { // flags win, so the value that was checked is the flag's
			continue
		}
		value := strings.Trim(p.Value, `"`)
		p.File, p.Source = "--"+name, "--"+name+" "+value
		p.Column, p.Width = len(p.File)+2, len(value)
	}
}
