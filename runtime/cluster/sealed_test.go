package cluster

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Whatever bit of a sealed file is another one, it is refused, or says what it said
// before; so is one of another kind, version or submission, and one that was cut.
//
// Fails if the checksum, the kind, the version or the owner is not compared.
func TestSealedFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	s := seal{"submission", 2, "ID"}
	if err := s.write(name, []byte("{\n  \"Records\": 8000\n}")); err != nil {
		t.Fatal(err)
	}
	body, err := s.read(name)
	if err != nil || string(body) != "{\n  \"Records\": 8000\n}" {
		t.Fatalf("%q, %v", body, err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, with seal, at int64) {
		t.Helper()
		b, err := with.read(name)
		var unread *StateError
		if err == nil && bytes.Equal(b, body) && at < 0 {
			return
		}
		if !errors.As(err, &unread) || unread.File != name || at >= 0 && unread.Offset != at {
			t.Errorf("%s: %q, %v", what, b, err)
		}
	}
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
			refused("flipped", s, -1)
		}
		if err := os.WriteFile(name, whole[:i], 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := s.read(name); err == nil && i < len(whole)-1 {
			t.Errorf("%d bytes: %q", i, b)
		}
	}
	at := bytes.Index(whole, []byte(`{`+"\n"))
	if err := os.WriteFile(name, bytes.Replace(whole, []byte("8000"), []byte("9000"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("another number", s, int64(at))
	if err := os.WriteFile(name, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, other := range []seal{{"result", 2, "ID"}, {"submission", 3, "ID"}, {"submission", 2, "OTHER"}} {
		if b, err := other.read(name); err == nil {
			t.Errorf("%+v reads %q", other, b)
		}
	}
}
