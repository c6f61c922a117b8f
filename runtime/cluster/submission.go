package cluster

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/options"
	"benchrun/runtime/task"
)

// submissionFile is in the state folder: every master reads its job from there.
const submissionFile = "job.json"

// sealOfSubmission counts its version up whenever the file changes.
func sealOfSubmission(id string) seal { return seal{"submission", 2, id} }

// newID makes what no other submission has. It has no dot or hyphen. Tests that
// leave files for a job to come know its id before.
var newID = rand.Text

// submission is the id that the job is to have.
func (c *Config) submission() string {
	if c.Submission != "" {
		return c.Submission
	}
	return newID()
}

// submission is a job with the cluster that it was submitted to.
type submission struct {
	ID            string // newID; in the job's log, its result and the names of its files
	Job           graph.Job
	Options       map[string]any
	Slots         int
	NetworkMemory int64
	BufferSize    int
	Network       task.NetworkConfig
	Storage       string
	OutputDir     string
	Seed          uint64
	Keep          bool
	Batch         bool                     `json:",omitempty"`
	FromScratch   bool                     `json:",omitempty"`
	Delays        map[string]time.Duration `json:",omitempty"` // planted in every process

	// What masters add.
	Parallelism map[string]int `json:",omitempty"` // by vertex, after rescales
	Started     time.Duration  `json:",omitempty"` // when the job first started, on the cluster's clock
}

func (s *submission) write(dir string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = sealOfSubmission(s.ID).write(filepath.Join(dir, submissionFile), b)
	}
	if err != nil {
		return fmt.Errorf("submission: %w", err)
	}
	return nil
}

// readSubmission reads the job of a cluster. One of another cluster, of another
// version of this program, or that was changed since, is refused: the error is a
// *StateError.
func readSubmission(dir, id string) (*submission, options.Values, error) {
	var none options.Values
	name := filepath.Join(dir, submissionFile)
	b, err := sealOfSubmission(id).read(name)
	if bad, ok := errors.AsType[*fs.PathError](err); ok { // it was there before the first master
		err = &StateError{name, -1, bad.Err}
	}
	if err != nil {
		return nil, none, fmt.Errorf("submission: %w", err)
	}
	s := &submission{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // int64 stays one
	if err := d.Decode(s); err != nil {
		return nil, none, fmt.Errorf("submission: %w", &StateError{name, -1, err})
	}
	for k, v := range s.Options {
		n, ok := v.(json.Number)
		if !ok {
			continue
		}
		if i, err := n.Int64(); err == nil {
			s.Options[k] = i
		} else if f, err := n.Float64(); err == nil {
			s.Options[k] = f
		}
	}
	values, errs := options.Parse(s.Options)
	if err := errors.Join(errs...); err != nil {
		return nil, none, fmt.Errorf("submission %s: %w", name, err)
	}
	return s, values, nil
}

// buildID tells builds apart: what the linker noted, and the executable's own
// size and time, which differ where the source was changed and not committed.
func buildID() string {
	id := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		id = info.GoVersion + " " + info.Path
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" || s.Key == "vcs.modified" {
				id += " " + s.Value
			}
		}
	}
	if exe, err := os.Executable(); err == nil {
		if st, err := os.Stat(runningImage(exe)); err == nil {
			id += fmt.Sprintf(" %d %d", st.Size(), st.ModTime().UnixNano())
		}
	}
	return id
}
