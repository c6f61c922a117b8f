// Package result is what a run leaves on disk: the types of its files, a
// writer that makes every finished trial durable at once, and a reader.
//
// A run folder holds
//
//	run.json             Run; replaced atomically when the state changes
//	trials.jsonl         one Trial a line, appended and synced
//	events/<trial>.jsonl one Event a line, the timeline of a trial
//	logs/<trial>.txt     output of a trial
//	tmp/<trial>/         checkpoints and spill while the trial runs
//	summary.json         Summary
//
// Folder owns a run folder for writing and holds a lock on it; there is one
// writer at a time. Load reads a folder without a lock, also while it is being
// written: a last line without its end is skipped with a warning.
//
// Load is strict about what it cannot know and mild about what it can leave
// out. No run.json of a run, or one of a newer version, is an error (ErrNoRun,
// ErrSchema). A line that no writer leaves (no number, a negative or impossible
// value, an id twice, an unknown outcome) is no sample: its slot is missing, and
// Unusable and a warning say which trial and metric. A trial that is not ok has
// no metrics whatever its line says, and one whose own proof is wrong is not ok.
// LoadAll refuses the same run twice (ErrSameRun), Intact a run whose workload
// text is not what it recorded (ErrEdited).
//
// A run whose first look alarmed has a SecondLook: blocks at the end of its
// plan. FirstLook is the run without them.
//
// A baseline is a run folder by the name of its workload; SaveBaseline replaces
// it under a lock so that one is there whatever happens, LoadBaseline finds it.
//
// HostProbe is the host in the moment before and after a trial; Busy judges it.
//
// The names in the files are a public format: fields are added, never renamed.
// A number that is not known is absent, never 0 and never NaN.
//
// The package imports nothing else of this module, so that old results stay
// readable whatever the engine becomes.
package result
