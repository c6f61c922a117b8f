package storage

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"benchrun/runtime/failpoint"
)

// ErrExists tells that PutIfAbsent found the name taken. It is fs.ErrExist, so
// errors.Is works with either.
var ErrExists = fs.ErrExist

// Store is a flat set of named streams. All methods are safe for concurrent
// use.
type Store interface {
	// URL names the store so that Open, in any process that can reach it,
	// returns the same one (mem:// only within a process).
	URL() string
	// Create starts a stream. Folders above it are made. The name may exist
	// already; then Commit replaces it.
	Create(name string) (Writer, error)
	// Open gives random access to a committed stream. A missing one is
	// fs.ErrNotExist.
	Open(name string) (Reader, error)
	// PutIfAbsent writes a small stream durably in one step unless the name
	// exists (ErrExists). Of concurrent callers exactly one succeeds.
	PutIfAbsent(name string, data []byte) error
	// Put writes a small stream durably in one step: readers and crashes see
	// the old bytes or the new ones.
	Put(name string, data []byte) error
	// List gives the names of all committed streams that begin with prefix,
	// at any depth, sorted. No match is no error.
	List(prefix string) ([]string, error)
	// Delete removes a stream. A missing one is no error.
	Delete(name string) error
	// DeleteAll removes a folder with everything in it, unfinished streams
	// included. A missing folder is no error; the empty name is refused.
	DeleteAll(prefix string) error
	// SyncDir makes the entries of a folder durable, and those of all folders
	// above it up to the root ("" is the root). A missing folder is
	// fs.ErrNotExist.
	SyncDir(prefix string) error
}

// Writer writes one stream. It belongs to one goroutine and must end with
// Commit or Abort; after either, both do nothing more. Writes are not
// buffered: write in large pieces.
type Writer interface {
	io.Writer
	// Commit makes the bytes durable and visible under the name. After an
	// error the stream counts as absent, whatever is left on the disk.
	Commit() error
	// Abort drops what was written.
	Abort() error
}

// Reader reads a committed stream. ReadAt may be called from several
// goroutines at once.
type Reader interface {
	io.ReaderAt
	io.Closer
	// Size is the length in bytes.
	Size() int64
	// Name is the name within the store.
	Name() string
}

// ReadAll returns all bytes of a committed stream.
func ReadAll(s Store, name string) ([]byte, error) {
	r, err := s.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, r.Size())
	if n, err := r.ReadAt(b, 0); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return nil, fmt.Errorf("read %s of %s: %w", name, s.URL(), err)
	}
	return b, nil
}

// Open returns the store at a URL: file:///dir or a plain path (made if it is
// missing), or mem://name (the same store for the same name).
func Open(rawURL string) (Store, error) {
	scheme, rest, isURL := strings.Cut(rawURL, "://")
	if !isURL {
		if rawURL == "" {
			return nil, errors.New("storage: the URL is empty; give a path, file:///dir or mem://name")
		}
		return OpenDir(rawURL)
	}
	switch strings.ToLower(scheme) {
	case "file":
		u, err := url.Parse(rawURL)
		if err != nil {
			return nil, fmt.Errorf("storage URL %q: %w", rawURL, err)
		}
		if (u.Host != "" && u.Host != "localhost") || u.Path == "" {
			return nil, fmt.Errorf("storage URL %q: a file URL has the form file:///absolute/path", rawURL)
		}
		return OpenDir(filepath.FromSlash(u.Path))
	case "mem":
		if rest == "" {
			return nil, fmt.Errorf("storage URL %q: a memory URL has the form mem://name", rawURL)
		}
		return OpenMemory(rest), nil
	case "s3":
		return nil, fmt.Errorf("storage URL %q: s3:// comes with a later version; use file:// or mem://", rawURL)
	}
	return nil, fmt.Errorf("storage URL %q: unknown scheme %q; known are file and mem", rawURL, scheme)
}

// OpenExisting is Open for a store that must be there already: a directory
// that does not exist is fs.ErrNotExist instead of being made.
func OpenExisting(rawURL string) (Store, error) {
	dir := rawURL
	if scheme, _, isURL := strings.Cut(rawURL, "://"); isURL {
		dir = ""
		if u, err := url.Parse(rawURL); err == nil && strings.EqualFold(scheme, "file") {
			dir = filepath.FromSlash(u.Path)
		}
	}
	if dir != "" {
		if _, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("storage: %w", err)
		}
	}
	return Open(rawURL)
}

// Places where a stream's life can be made to go wrong; the subject is its
// name.
var (
	beforeCreate = failpoint.New("storage/create")
	beforeWrite  = failpoint.New("storage/write")
	beforeCommit = failpoint.New("storage/commit")
	afterCommit  = failpoint.New("storage/committed")
	beforePut    = failpoint.New("storage/put")
	putVisible   = failpoint.New("storage/put-visible") // not yet durable
	afterPut     = failpoint.New("storage/put-done")
	beforeOpen   = failpoint.New("storage/open")
	beforeDelete = failpoint.New("storage/delete")
	beforeSync   = failpoint.New("storage/sync-dir")
)

// tempPrefix begins the base name of files that are not committed yet.
const tempPrefix = ".tmp-"

// checkName refuses names that could leave the store or meet its temporary
// files.
func checkName(op, name string) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\\x00") {
		return fmt.Errorf("storage %s: %q is no name inside a store: %w", op, name, fs.ErrInvalid)
	}
	if strings.HasPrefix(path.Base(name), tempPrefix) {
		return fmt.Errorf("storage %s: %q: names that begin with %q are reserved: %w", op, name, tempPrefix, fs.ErrInvalid)
	}
	return nil
}

// checkFolder is checkName for folders, where "" is the root.
func checkFolder(op, folder string) error {
	if folder == "" {
		return nil
	}
	return checkName(op, folder)
}

// checkPrefix refuses list prefixes that could leave the store.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	return checkName("list", strings.TrimSuffix(prefix, "/"))
}
