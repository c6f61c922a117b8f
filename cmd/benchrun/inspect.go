package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"benchrun/harness/result"
	"benchrun/runtime/options"
	"benchrun/workloads/spec"

	"github.com/spf13/cobra"
)

func (a *app) validateCommand() *cobra.Command {
	var sets []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "validate FILE|DIR...",
		Short: "check workload files: all problems at once, nothing is run",
		Long: `Checks workload files strictly and reports all problems at once, each with file,
line and column, the line itself, the key, the value and the nearest right thing.`,
		Example: `  benchrun validate configs
  benchrun validate my.toml --set cluster.workers=4`,
		Args: needs("a FILE or DIR"),
		RunE: func(c *cobra.Command, args []string) error { return a.validate(args, sets, asJSON) },
	}
	c.Flags().StringArrayVar(&sets, "set", nil, "set a key of the file: `KEY=VALUE`, by its path (repeatable)")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return c
}

// checked is one file in the document of validate.
type checked struct {
	File     string         `json:"file"`
	Valid    bool           `json:"valid"`
	Cells    int            `json:"cells"`
	Problems []spec.Problem `json:"problems"`
	Warnings []spec.Problem `json:"warnings"`
}

func (a *app) validate(paths, sets []string, asJSON bool) error {
	names, err := spec.Find(paths)
	if err != nil {
		return err
	}
	var all []checked
	problems := 0
	for _, name := range names {
		c := checked{File: name, Problems: []spec.Problem{}, Warnings: []spec.Problem{}}
		f, err := loadFile(name, sets)
		var ps spec.Problems
		switch {
		case errors.As(err, &ps):
			c.Problems = ps
			problems += len(ps)
		case err != nil:
			return err
		default:
			c.Valid, c.Cells, c.Warnings = true, len(f.Cells()), append(c.Warnings, f.Warnings...)
		}
		all = append(all, c)
	}
	if asJSON {
		if err := a.document(map[string]any{"files": all, "problems": problems}); err != nil {
			return err
		}
	} else {
		for _, c := range all {
			for i := range c.Problems {
				fmt.Fprint(a.stdout, c.Problems[i].Text())
			}
			for i := range c.Warnings {
				fmt.Fprint(a.stdout, "warning: "+c.Warnings[i].Text())
			}
			if c.Valid {
				fmt.Fprintf(a.stdout, "%s: ok, %s\n", c.File, count(c.Cells, "cell"))
			}
		}
		if problems > 0 {
			fmt.Fprintln(a.stdout, count(problems, "problem"))
		}
	}
	if problems > 0 {
		return exit(result.ExitUsage, nil)
	}
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (a *app) planCommand() *cobra.Command {
	var s selection
	var asJSON bool
	c := &cobra.Command{
		Use:   "plan FILE|DIR...",
		Short: "show what run would do: cells, order, time, disk, what is left out and why",
		Long: `Shows what run would do with the same flags: the cells and those left out with the
reason, cells that cannot differ, how much in-flight data the buffers hold, the
order of the trials, and an estimate of time and disk.`,
		Example: `  benchrun plan configs/quickstart.toml
  benchrun plan configs/streaming --only tag:nightly --repeats 20`,
		Args: needs("a FILE or DIR"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.read(c); err != nil {
				return err
			}
			p, files, err := a.plan(args, &s)
			if err != nil {
				return err
			}
			printWarnings(a.stderr, files)
			if asJSON {
				return a.document(p.Report())
			}
			return p.Write(a.stdout)
		},
	}
	s.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return c
}

// lists are what list knows.
var lists = []string{"workloads", "operators", "options", "metrics", "faults", "targets"}

func (a *app) listCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:       "list " + strings.Join(lists, "|"),
		Short:     "list workloads, operators, options, metrics, faults or targets",
		Long:      "Lists what workload files can be made of. `list workloads` takes files and folders; without them it looks in configs.",
		Example:   "  benchrun list options\n  benchrun list workloads configs/streaming",
		ValidArgs: lists,
		Args:      needs("one of " + strings.Join(lists, ", ")),
		RunE:      func(c *cobra.Command, args []string) error { return a.list(args, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON document on stdout")
	return c
}

// entry is one line of a list.
type entry struct {
	Name string         `json:"name"`
	Help string         `json:"help"`
	More map[string]any `json:"more,omitempty"`
	note string         // column between name and help
}

func (a *app) list(args []string, asJSON bool) error {
	if args[0] != "workloads" && len(args) > 1 {
		return fmt.Errorf("list %s takes no further arguments", args[0])
	}
	var entries []entry
	switch args[0] {
	case "workloads":
		paths := args[1:]
		if len(paths) == 0 {
			paths = []string{"configs"}
		}
		files, err := a.load(paths, nil)
		if err != nil {
			return err
		}
		for _, f := range files {
			entries = append(entries, entry{f.Name, f.Description, map[string]any{"file": f.Path, "cells": len(f.Cells()), "tags": f.Tags},
				fmt.Sprintf("%s\t%s", f.Path, count(len(f.Cells()), "cell"))})
		}
	case "operators":
		entries = operatorEntries()
	case "options":
		for _, i := range options.All() {
			entries = append(entries, entry{i.Key, i.Help, map[string]any{"type": i.Type, "default": i.Canonical(i.Default), "short": i.Short, "aliases": i.Aliases, "requires": i.Requires},
				fmt.Sprintf("%s\t%s", i.Type, i.DefaultText())})
		}
	case "metrics":
		for _, m := range slices.Concat(result.Metrics(), result.DerivedMetrics()) {
			entries = append(entries, entry{m.Name, m.Help, map[string]any{"unit": m.Unit, "better": m.Better, "resolution": m.Resolution}, fmt.Sprintf("%s\t%s", m.Unit, betterText(m.Better))})
		}
	case "faults":
		for _, x := range spec.Actions() {
			kind := "action"
			if x.Fault {
				kind = "fault"
			}
			entries = append(entries, entry{x.Name, x.Help + laterText(x.Later), map[string]any{"keys": x.Keys, "fault": x.Fault, "mode": x.Mode, "later": x.Later}, kind})
		}
	case "targets":
		for _, x := range targetWords {
			entries = append(entries, entry{x.name, x.help, nil, ""})
		}
	default:
		return fmt.Errorf("there is no list of %q%s", args[0], nearest(args[0], lists))
	}
	if asJSON {
		return a.document(map[string]any{args[0]: entries})
	}
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, e := range entries {
		if e.note != "" {
			fmt.Fprintf(t, "%s\t%s\t%s\n", e.Name, e.note, e.Help)
		} else {
			fmt.Fprintf(t, "%s\t%s\n", e.Name, e.Help)
		}
	}
	return t.Flush()
}

func operatorEntries() []entry {
	var out []entry
	for _, o := range spec.Operators() {
		var params []string
		more := map[string]any{}
		for _, p := range o.Params {
			params = append(params, p.Name)
			more[p.Name] = map[string]any{"type": p.Type, "default": p.Default, "required": p.Required, "help": p.Help}
		}
		help := o.Help
		if o.BatchOnly {
			help += " (batch jobs only)"
		}
		if len(params) > 0 {
			help += " (" + strings.Join(params, ", ") + ")"
		}
		out = append(out, entry{o.Name, help, map[string]any{"kind": o.Kind, "params": more}, string(o.Kind)})
	}
	return out
}

func laterText(what string) string {
	if what == "" {
		return ""
	}
	return " [comes with a later version]"
}

func betterText(b result.Better) string {
	switch b {
	case result.Lower:
		return "lower is better"
	case result.Higher:
		return "higher is better"
	}
	return "neither is better"
}
