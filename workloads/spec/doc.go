// Package spec reads workload files: one TOML file that describes a job, a
// cluster, a scenario and a matrix of options.
//
// Reading is strict. Every problem of a file is reported at once, each with
// its position, the offending key and value, and the nearest right thing; see
// Problem. A File that loads without a problem resolves to one Workload for
// each cell of its matrix, fully typed and checked.
//
// The stages are
//
//	text -> tree of nodes with positions -> overrides -> (per cell: axis values) -> Workload -> checks
//
// so overrides and axis values are checked exactly like what stands in the
// file. What rests on a part of it that has a mistake is not checked, so that a
// mistake is told once.
//
// Keys, Operators, Actions and the registry of options are the only tables of
// what may stand where: reading, lists and the schema for editors come from
// them. The package describes operators but does not run them; it knows nothing
// of targets beyond the names that the format allows.
//
// What may stand in a file depends on the mode of its job as well; batch.go has
// the tables of what means something in batch mode only, or in streaming mode.
//
// LoadThresholds reads the other file that people write, the differences that a
// gate lets pass, in the same manner.
package spec
