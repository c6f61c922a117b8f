// Package options is the one registry of the options that the runtime honours:
// key, aliases, type, default, limits, what an option requires, and a line of
// help for each.
//
// Keys and spellings are Flink's, and so are the defaults, except for those
// that would only add waiting to a measurement: rescale cool-down,
// stabilisation and trigger delay are 0, the restart strategy is fixed-delay
// with 0 s and no practical limit, heartbeats are 1 s and time out after 5 s.
//
// Every option is a package variable with its type, so code reads a value as
//
//	if options.UnalignedEnabled.Get(v) { ... }
//
// Values is an immutable set of checked values. Its zero value holds nothing
// but defaults. Parse checks each value by itself; rules between options
// (Info.Requires) are checked by Values.Broken, because a set that breaks a
// rule is left out of a matrix or run as a control on purpose, while a wrong
// value is always an error.
//
// Sizes count in powers of 1024 whatever the spelling of the unit, as Flink
// does: "1 MB", "1 mb" and "1 MiB" are all 1048576 bytes.
package options
