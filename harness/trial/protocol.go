package trial

import (
	"errors"

	"benchrun/harness/result"
)

// Protocol is the version that this build speaks.
const Protocol = 1

// ErrProtocol means that the other build speaks another version.
var ErrProtocol = errors.New("the build speaks another trial protocol")

// Request is what the child is to do: the first line of its stdin.
type Request struct {
	Protocol  int      `json:"protocol"`
	Trial     string   `json:"trial"` // id
	File      string   `json:"file"`  // of the workload, for messages
	Dir       string   `json:"dir"`   // that the file's relative paths are relative to
	Text      string   `json:"text"`  // of the workload
	Overrides []string `json:"overrides,omitempty"`
	Cell      string   `json:"cell"`
	Build     string   `json:"build"`
	Block     int      `json:"block"`
	Warmup    bool     `json:"warmup"`
	Order     int      `json:"order"`
	Folder    string   `json:"folder"`         // for checkpoints, spill and output; exists and is empty
	Keep      bool     `json:"keep,omitempty"` // leave the last checkpoints when the job ends
	// Submission is the id of the job, which no other one has; empty: from a run of an
	// earlier build.
	Submission string `json:"submission,omitempty"`
	// FromScratch: a master that cannot read the log of its job begins anew.
	FromScratch bool `json:"from_scratch,omitempty"`
	// DelaysUs slows fault points of the engine down, by their names: a known
	// slow-down that the measuring must find.
	DelaysUs map[string]int64 `json:"delays_us,omitempty"`
}

// Message is one line of the child's stdout. Exactly one field is set.
type Message struct {
	Hello *Hello        `json:"hello,omitempty"`
	Event *result.Event `json:"event,omitempty"`
	Phase string        `json:"phase,omitempty"` // name of the step that begins
	Trial *result.Trial `json:"trial,omitempty"` // the last message
	Error string        `json:"error,omitempty"` // the request was not understood; nothing follows
}

// Hello says who answers.
type Hello struct {
	Protocol int    `json:"protocol"`
	Revision string `json:"revision"`
	Target   string `json:"target,omitempty"`  // name
	Version  string `json:"version,omitempty"` // of the target
}
