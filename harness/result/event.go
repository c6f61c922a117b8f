package result

import (
	"encoding/json"
	"fmt"
)

// None is the value of a numeric field of an Event that does not apply.
const None = -1

// Event is one line of events/<trial>.jsonl. Numeric fields that do not apply
// hold None in memory and are absent in the file.
type Event struct {
	TUs        int64 // microseconds on the monotonic clock since the trial's start
	Kind       string
	Vertex     string
	Subtask    int
	Attempt    int
	State      string
	Checkpoint int64
	Bytes      int64
	Records    int64 // throughput: records that left the sources since the one before
	LagUs      int64 // throughput: how late a rated source is
	Reason     string
	Detail     string
}

type eventLine struct {
	TUs        int64  `json:"t_us"`
	Kind       string `json:"kind"`
	Vertex     string `json:"vertex,omitempty"`
	Subtask    *int   `json:"subtask,omitempty"`
	Attempt    *int   `json:"attempt,omitempty"`
	State      string `json:"state,omitempty"`
	Checkpoint *int64 `json:"checkpoint,omitempty"`
	Bytes      *int64 `json:"bytes,omitempty"`
	Records    *int64 `json:"records,omitempty"`
	LagUs      *int64 `json:"lag_us,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Detail     string `json:"detail,omitempty"`
}

// MarshalJSON writes the fields that apply.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(eventLine{
		TUs: e.TUs, Kind: e.Kind, Vertex: e.Vertex, Subtask: present(e.Subtask), Attempt: present(e.Attempt), State: e.State,
		Checkpoint: present(e.Checkpoint), Bytes: present(e.Bytes), Records: present(e.Records), LagUs: present(e.LagUs),
		Reason: e.Reason, Detail: e.Detail,
	})
}

// UnmarshalJSON reads a line; absent numbers become None.
func (e *Event) UnmarshalJSON(b []byte) error {
	var l eventLine
	if err := json.Unmarshal(b, &l); err != nil {
		return fmt.Errorf("event: %w", err)
	}
	*e = Event{
		TUs: l.TUs, Kind: l.Kind, Vertex: l.Vertex, Subtask: orNone(l.Subtask), Attempt: orNone(l.Attempt), State: l.State,
		Checkpoint: orNone(l.Checkpoint), Bytes: orNone(l.Bytes), Records: orNone(l.Records), LagUs: orNone(l.LagUs),
		Reason: l.Reason, Detail: l.Detail,
	}
	return nil
}

func present[T int | int64](n T) *T {
	if n == None {
		return nil
	}
	return &n
}

func orNone[T int | int64](p *T) T {
	if p == nil {
		return None
	}
	return *p
}

// JSONSchemaAlias gives makers of schemas the line instead of the event.
func (Event) JSONSchemaAlias() any { return eventLine{} }
