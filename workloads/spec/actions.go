package spec

// Action describes one word of a step's do.
type Action struct {
	Name  string
	Fault bool     // disturbs the job: its start is a t0
	Keys  []string // keys that a step with this word may have, besides do, name, repeat
	Mode  string   // Streaming or Batch: in jobs of this mode only; empty: in all
	Later string   // what it needs that comes with a later version
	Help  string
}

var actions = []Action{
	{Name: "rescale", Fault: true, Mode: Streaming, Keys: []string{"parallelism", "when"}, Help: "change the parallelism of vertices; the job restarts from the newest complete checkpoint at once"},
	{Name: "fail-task", Fault: true, Keys: []string{"vertex", "subtask", "when"}, Help: "one task throws an exception; its region restarts"},
	{Name: "kill-worker", Fault: true, Keys: []string{"worker", "replace-after", "when"}, Help: "a worker dies: its sockets break and its slots vanish; replace-after brings a new one"},
	{Name: "freeze-worker", Fault: true, Keys: []string{"worker", "for", "when"}, Help: "a worker stops doing anything, heartbeats included, for a time"},
	{Name: "fail-storage", Fault: true, Mode: Streaming, Keys: []string{"for", "kind", "when"}, Help: "checkpoint storage fails for a time: error, slow, full or torn writes"},
	{Name: "kill-jobmanager", Fault: true, Keys: []string{"down-for", "when"}, Help: "the master dies and another one comes after down-for (default 1 s). A streaming job needs target \"process\" for it, a batch job can lose its master on each"},
	{Name: "drop-partition", Fault: true, Keys: []string{"vertex", "subtask", "when"}, Mode: Batch, Help: "the finished output of a batch task is lost; what needs it makes it again"},
	{Name: "upgrade", Fault: true, Keys: []string{"file", "upgrade-mode", "when"}, Later: "the life cycle of deployments", Help: "replace the job by another one"},
	{Name: "rollback", Fault: true, Keys: []string{"when"}, Later: "the life cycle of deployments", Help: "go back to the job before the upgrade"},
	{Name: "savepoint", Mode: Streaming, Help: "take a savepoint; the job goes on"},
	{Name: "stop-with-savepoint", Mode: Streaming, Help: "take a savepoint and end the job"},
	{Name: "suspend", Later: "the life cycle of deployments", Help: "stop the job and keep its state"},
	{Name: "resume", Later: "the life cycle of deployments", Help: "start a suspended job again"},
	{Name: "cancel", Help: "stop the job at once"},
	{Name: "finish", Help: "let sources end, wait for the final checkpoint and all commits, verify the output; a batch job ends by itself"},
}

// actionByName finds actions by name.
var actionByName = func() map[string]*Action {
	m := map[string]*Action{}
	for i := range actions {
		m[actions[i].Name] = &actions[i]
	}
	return m
}()

// Actions lists the words of a step's do, faults first.
func Actions() []Action { return append([]Action(nil), actions...) }

// LookupAction finds an action by its word.
func LookupAction(name string) (Action, bool) {
	if a := actionByName[name]; a != nil {
		return *a, true
	}
	return Action{}, false
}
