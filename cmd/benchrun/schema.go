package main

import (
	"fmt"
	"slices"
	"strings"

	"benchrun/harness/schema"

	"github.com/spf13/cobra"
)

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema " + strings.Join(schema.Names(), "|"),
		Short: "print the JSON Schema of a file that benchrun reads or writes",
		Long: `Prints a JSON Schema (draft 2020-12): of workload files, for editors that complete
and check; of run.json; of a line of trials.jsonl; of a line of an events file; of
summary.json.`,
		Example: `  benchrun schema workload > workload.schema.json
  sed -i '1i #:schema ./workload.schema.json' my.toml    # read by Taplo and Even Better TOML`,
		ValidArgs: schema.Names(),
		Args:      one("schema", schema.Names),
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := schema.Document(args[0])
			if err != nil {
				return err
			}
			_, err = a.stdout.Write(b)
			return err
		},
	}
}

// one gives a usage error unless there is exactly one argument, of a list.
func one(what string, list func() []string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return needs("one of "+strings.Join(list(), ", "))(c, nil)
		}
		if slices.Contains(list(), args[0]) {
			return nil
		}
		return fmt.Errorf("there is no %s %q%s", what, args[0], nearest(args[0], list()))
	}
}
