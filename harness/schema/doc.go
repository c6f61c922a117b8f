// Package schema writes the JSON Schemas (draft 2020-12) of the files that the
// lab reads and writes: workload files, run.json, a line of trials.jsonl, an
// event and summary.json.
//
// The schemas of results come from the types of harness/result: their keys,
// what is required and the types of values. Only words are added here: a
// description for each field, and the sets of words that a string may be. They
// allow further keys, because the format grows by adding.
//
// The schema of workload files comes from the tables by which workloads/spec
// reads them, from its operators and actions, and from the registry of options.
// It is strict, for editors that complete and check; what takes more than one
// key to judge (graphs, capacity, rules between options) is left to validate.
//
// The same version gives the same bytes.
package schema
