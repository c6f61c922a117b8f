package cluster

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"benchrun/runtime/graph"
	"benchrun/runtime/options"
	"benchrun/runtime/storage"
	"benchrun/runtime/task"
)

// submissionFile is in the state folder: every master reads its job from there.
const submissionFile = "job.json"

// submissionFormat counts up whenever the file changes.
const submissionFormat = 1

// newID makes what no other submission has. It has no dot or hyphen. Tests that
// leave files for a job to come know its id before.
var newID = rand.Text

// submission is a job with the cluster that it was submitted to.
type submission struct {
	Format        int
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
	if err != nil {
		return fmt.Errorf("submission: %w", err)
	}
	return storage.WriteFile(filepath.Join(dir, submissionFile), append(b, '\n'))
}

// readSubmission reads the job of a cluster. A folder of another cluster, or
// of another version of this program, is refused.
func readSubmission(dir, id string) (*submission, options.Values, error) {
	var none options.Values
	name := filepath.Join(dir, submissionFile)
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, none, fmt.Errorf("submission: %w", err)
	}
	s := &submission{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber() // int64 stays one
	if err := d.Decode(s); err != nil {
		return nil, none, fmt.Errorf("submission %s: %w", name, err)
	}
	if s.Format != submissionFormat {
		return nil, none, fmt.Errorf("submission %s has format %d; this program reads %d", name, s.Format, submissionFormat)
	}
	if s.ID != id {
		return nil, none, fmt.Errorf("submission %s is of another cluster (%q, not %q)", name, s.ID, id)
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
