package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"

	"benchrun/runtime/storage"
)

// A sealed file of the state folder says what it is, whose, and the checksum of
// what it holds, so that no master acts on one that was changed, damaged, written
// by another version or left by another submission. It is one JSON document:
//
//	{"kind":"submission","version":2,"owner":"ID","crc32c":"0a1b2c3d","body":…}
//
// The checksum is over the bytes of the body as they stand in the file.
type seal struct {
	kind    string
	version int
	owner   string // id of the submission; "": files of all look alike, and an epoch orders them
}

type sealedFile struct {
	Kind    string          `json:"kind"`
	Version int             `json:"version"`
	Owner   string          `json:"owner,omitempty"`
	CRC32C  string          `json:"crc32c"`
	Body    json.RawMessage `json:"body"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func sum(b []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) }

// StateError: a file of the state folder is not what a master has written there.
// What the file says cannot be had from anywhere else.
type StateError struct {
	File   string
	Offset int64 // -1: it is no matter of a place
	Err    error
}

func (e *StateError) Error() string {
	switch {
	case e.File == "":
		return e.Err.Error() // another process has said all
	case e.Offset < 0:
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Offset, e.Err)
}

// Unwrap gives the reason.
func (e *StateError) Unwrap() error { return e.Err }

// write replaces a file in one durable step.
func (s seal) write(name string, body []byte) error {
	owner, err := json.Marshal(s.owner)
	if err != nil {
		return err
	}
	head := fmt.Sprintf(`{"kind":%q,"version":%d,"owner":%s,"crc32c":%q,"body":`, s.kind, s.version, owner, sum(body))
	return storage.WriteFile(name, append(append([]byte(head), body...), "}\n"...))
}

// read returns the body of a file. The error wraps fs.ErrNotExist, or is a
// *StateError.
func (s seal) read(name string) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	bad := func(at int64, format string, args ...any) error {
		return &StateError{name, at, fmt.Errorf(format, args...)}
	}
	var f sealedFile
	if err := json.Unmarshal(b, &f); err != nil {
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			return nil, bad(e.Offset, "the file is damaged: %w", err)
		}
		return nil, bad(0, "the file is damaged: it has no seal")
	}
	switch body := int64(len(b) - len(f.Body) - len("}\n")); {
	case f.Kind != s.kind:
		return nil, bad(0, "the file is no %s of a job, but %q", s.kind, f.Kind)
	case f.Version != s.version:
		return nil, bad(-1, "the file has format version %d, this program reads %d", f.Version, s.version)
	case f.CRC32C != sum(f.Body):
		return nil, bad(body, "the file is damaged: its checksum is %s, that of the %d bytes from here on is %s", f.CRC32C, len(f.Body), sum(f.Body))
	case f.Owner != s.owner:
		return nil, bad(-1, "the file is of another submission (%q, not %q)", f.Owner, s.owner)
	}
	return f.Body, nil
}
