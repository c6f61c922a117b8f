package operator

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// Output takes what an operator emits.
type Output interface {
	Emit(r *record.Record) error
	// Watermark passes on that no record with a smaller time will follow.
	Watermark(t int64) error
	// Status passes on whether watermarks are to be expected.
	Status(active bool) error
}

// Context is what an operator gets from its task.
type Context struct {
	ID             string
	Subtask        int
	Parallelism    int
	MaxParallelism int
	Attempt        int
	Keyed          *state.Backend
	Lists          *state.Lists
	Restored       bool
	Out            Output
	Dir            string          // where committed output goes
	Uncharged      *atomic.Bool    // set when cost is no longer charged
	Stop           <-chan struct{} // closed when the task is cancelled
	// Of a batch job: there are no checkpoints, and Finish sees the end of all
	// input. Name is that of the attempt, for what it leaves to be committed.
	Batch    bool
	Name     string
	SpillDir string // for what does not fit Memory
	Memory   int    // bytes; 0: as the operator likes
}

// Operator processes records. See the package comment for the rules.
type Operator interface {
	Open(c *Context) error
	// Process takes a record of input 0, or 1 of a two-input operator.
	Process(input int, r *record.Record) error
	// Watermark tells the combined watermark of all inputs. The operator fires
	// timers and passes it on.
	Watermark(t int64) error
	// Finish flushes at the end of data, before the last checkpoint.
	Finish() error
	// Prepare puts what the operator keeps outside its state there, for a
	// snapshot.
	Prepare(checkpoint int64) error
	// Completed tells that a checkpoint is durable.
	Completed(checkpoint int64) error
	// Close frees everything. It is called once, also after an error.
	Close() error
}

// Reporter is an operator that has something to tell when its task finishes.
type Reporter interface {
	Report() (any, error)
}

// Params are the parameters of all operators of the library; each reads its
// own. Durations are nanoseconds, sizes bytes.
type Params struct {
	Cost      int64   `json:",omitempty"`
	Burn      bool    `json:",omitempty"` // cost burns CPU instead of waiting
	StateSize int     `json:",omitempty"`
	Keep      float64 `json:",omitempty"`
	FanOut    int     `json:",omitempty"`
	Size      int64   `json:",omitempty"` // of a window, in ms
	Path      string  `json:",omitempty"` // below Context.Dir if relative
	Source    uint16  `json:",omitempty"` // identity of records that the operator makes
}

var library = map[string]func(p Params) Operator{
	"map":         func(p Params) Operator { return &mapper{cost: newCost(p)} },
	"filter":      func(p Params) Operator { return &filter{cost: newCost(p), keep: threshold(p.Keep)} },
	"flat-map":    func(p Params) Operator { return &flatMap{cost: newCost(p), fanOut: uint32(p.FanOut)} },
	"split-words": func(p Params) Operator { return &splitWords{cost: newCost(p)} },
	"keyed-sum":   func(p Params) Operator { return &keyedSum{cost: newCost(p), stateSize: p.StateSize} },
	"count-by-key": func(p Params) Operator {
		return &keyedSum{cost: newCost(p), stateSize: p.StateSize, count: true, source: p.Source}
	},
	"window-sum": func(p Params) Operator {
		return &windowSum{cost: newCost(p), size: p.Size, stateSize: p.StateSize, source: p.Source}
	},
	"join":          func(p Params) Operator { return &join{cost: newCost(p), stateSize: p.StateSize} },
	"sort":          func(p Params) Operator { return &sorter{cost: newCost(p)} },
	"co-map":        func(p Params) Operator { return &mapper{cost: newCost(p)} },
	"broadcast-map": func(p Params) Operator { return &broadcastMap{cost: newCost(p)} },
	"verify-sink":   func(p Params) Operator { return &verifySink{cost: newCost(p)} },
	"file-sink":     func(p Params) Operator { return &fileSink{cost: newCost(p), path: p.Path} },
	"discard":       func(p Params) Operator { return &discard{cost: newCost(p)} },
}

// New makes an operator of the library by its name.
func New(name string, params json.RawMessage) (Operator, error) {
	mk := library[name]
	if mk == nil {
		return nil, fmt.Errorf("no operator %q; there are %s", name, strings.Join(Names(), ", "))
	}
	var p Params
	if len(params) > 0 {
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, fmt.Errorf("parameters of operator %q: %w", name, err)
		}
	}
	return mk(p), nil
}

// Names lists the library, sorted.
func Names() []string {
	names := make([]string, 0, len(library))
	for n := range library {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// base does what most operators do: pass on and keep nothing.
type base struct{ c *Context }

func (b *base) Open(c *Context) error   { b.c = c; return nil }
func (b *base) Watermark(t int64) error { return b.c.Out.Watermark(t) }
func (b *base) Finish() error           { return nil }
func (b *base) Prepare(int64) error     { return nil }
func (b *base) Completed(int64) error   { return nil }
func (b *base) Close() error            { return nil }
