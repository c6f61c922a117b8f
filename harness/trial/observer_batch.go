package trial

import (
	"benchrun/harness/result"
	"benchrun/runtime/timeline"
)

// batchObserver follows a batch job: its tasks come and go in waves, so what
// counts is not that all of them run but that one does.
type batchObserver struct {
	any      bool // a task has run
	killed   bool // the last fault killed the master
	noticed  bool // somebody knows of the last fault: for a killed master, the next one leads
	ran      bool // a task ran since then
	ended    bool // a task that had not has finished since then
	finished map[taskKey]bool
	running  map[taskKey]bool
}

// fault begins a new window.
func (b *batchObserver) fault(kind string, mustBack bool) {
	b.killed = kind == result.KillMaster
	b.noticed, b.ran, b.ended = !mustBack, false, false
}

func (b *batchObserver) add(e timeline.Event) {
	k := taskKey{e.Vertex, e.Subtask}
	switch e.Kind {
	case timeline.MasterElected:
		b.noticed = true
	case timeline.WorkerLost:
		b.noticed = b.noticed || !b.killed
	case timeline.PartitionLost:
		delete(b.finished, k)
		b.noticed = b.noticed || !b.killed
	case timeline.PartitionKept:
		if e.Reason == "" {
			b.finished[k] = true // it may have been lost before
		}
	case timeline.TaskState:
		switch e.State {
		case "FAILED":
			delete(b.running, k)
			b.noticed = b.noticed || !b.killed
		case "DEPLOYING":
			delete(b.finished, k)
		case "CANCELED":
			delete(b.running, k)
		case "RUNNING":
			b.running[k] = true
			b.any = true
			b.ran = b.ran || b.noticed
		case "FINISHED":
			b.ended = b.ended || b.noticed && !b.finished[k] // a new master tells old ends again
			b.finished[k] = true
			delete(b.running, k)
		}
	}
}

// recovering tells whether a recovery has begun and nothing has come of it.
func (b *batchObserver) recovering() bool { return b.noticed && !b.ended }

// from is the first subtask of a vertex, from one on and around, that is among
// some; that one itself if none is.
func from(among map[taskKey]bool, vertex string, subtask, parallelism int) int {
	for i := range parallelism {
		if n := (subtask + i) % parallelism; among[taskKey{vertex, n}] {
			return n
		}
	}
	return subtask
}
