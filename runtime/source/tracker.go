package source

import (
	"maps"
	"slices"
)

// Split is a piece of a source's input. Data is opaque to the coordinator; a
// reader that goes on with the split keeps its own position in its state.
type Split struct {
	ID   string
	Data []byte
}

// tracker remembers which splits were handed to which reader since which
// checkpoint, so that they can be taken back when a reader falls back to an
// earlier one.
type tracker struct {
	// uncheckpointed[subtask] are the splits assigned since the last snapshot.
	uncheckpointed map[int][]Split
	// byCheckpoint[id][subtask] are those that had been assigned since the
	// snapshot before when the one of this checkpoint was taken.
	byCheckpoint map[int64]map[int][]Split
}

func newTracker() *tracker {
	return &tracker{uncheckpointed: map[int][]Split{}, byCheckpoint: map[int64]map[int][]Split{}}
}

// assign notes splits that go to a subtask.
func (t *tracker) assign(subtask int, splits []Split) {
	t.uncheckpointed[subtask] = append(t.uncheckpointed[subtask], splits...)
}

// snapshot puts what is new under a checkpoint.
func (t *tracker) snapshot(checkpoint int64) {
	t.byCheckpoint[checkpoint] = t.uncheckpointed
	t.uncheckpointed = map[int][]Split{}
}

// complete forgets what no reader can fall back behind any more.
func (t *tracker) complete(checkpoint int64) {
	maps.DeleteFunc(t.byCheckpoint, func(id int64, _ map[int][]Split) bool { return id <= checkpoint })
}

// takeBack gives the splits that a subtask does not have in its state of the
// given checkpoint (0: it has none), oldest first, and forgets them.
func (t *tracker) takeBack(subtask int, restored int64) []Split {
	var splits []Split
	for _, id := range slices.Sorted(maps.Keys(t.byCheckpoint)) {
		if id > restored {
			splits = append(splits, t.byCheckpoint[id][subtask]...)
			delete(t.byCheckpoint[id], subtask)
		}
	}
	splits = append(splits, t.uncheckpointed[subtask]...)
	delete(t.uncheckpointed, subtask)
	return splits
}
