package snapshot

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"benchrun/runtime/failpoint"
	"benchrun/runtime/storage"
)

// MetadataFile is the file whose presence makes a folder a complete
// checkpoint.
const MetadataFile = "_metadata"

// Folder is the name of a checkpoint's folder.
func Folder(checkpoint int64) string { return "chk-" + strconv.FormatInt(checkpoint, 10) }

// SavepointFolder makes a fresh name for a savepoint's folder.
func SavepointFolder(checkpoint int64) string {
	return SavepointFolderOf(checkpoint, SavepointToken())
}

// SavepointToken makes a fresh name for the savepoints of one job.
func SavepointToken() string { return strings.ToLower(rand.Text()[:8]) }

// SavepointFolderOf is the name of a savepoint's folder in a job whose tasks
// all know the token.
func SavepointFolderOf(checkpoint int64, token string) string {
	return fmt.Sprintf("savepoint-%d-%s", checkpoint, token)
}

// ParseFolder reads the name of a folder; ok is false if it is not one of a
// checkpoint or savepoint.
func ParseFolder(name string) (checkpoint int64, savepoint, ok bool) {
	digits, isCheckpoint := strings.CutPrefix(name, "chk-")
	if !isCheckpoint {
		rest, isSavepoint := strings.CutPrefix(name, "savepoint-")
		if !isSavepoint {
			return 0, false, false
		}
		var random string
		if digits, random, isSavepoint = strings.Cut(rest, "-"); !isSavepoint || random == "" {
			return 0, false, false
		}
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != digits {
		return 0, false, false
	}
	return id, !isCheckpoint, true
}

// unknownOutcomeError marks a failure after which the metadata may be visible.
type unknownOutcomeError struct{ err error }

func (e *unknownOutcomeError) Error() string { return e.err.Error() + " (it may have been written)" }
func (e *unknownOutcomeError) Unwrap() error { return e.err }

// IsUnknownOutcome tells that Write failed and yet may have completed the
// checkpoint: its files must be kept.
func IsUnknownOutcome(err error) bool {
	_, ok := errors.AsType[*unknownOutcomeError](err)
	return ok
}

var (
	beforeMetadata = failpoint.New("snapshot/before-metadata")
	afterMetadata  = failpoint.New("snapshot/after-metadata")
)

// Write completes a checkpoint whose data files are committed: entries of the
// data files, metadata, entries of the metadata and the folders, each durable
// before the next.
func Write(s storage.Store, folder string, m *Metadata) error {
	// A checkpoint with inline state alone has no folder yet.
	if err := s.SyncDir(folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("write metadata of %s: %w", folder, err)
	}
	if err := beforeMetadata.Hit(folder); err != nil {
		return fmt.Errorf("write metadata of %s: %w", folder, err)
	}
	name := path.Join(folder, MetadataFile)
	err := s.Put(name, Encode(m))
	if err == nil {
		err = afterMetadata.Hit(folder)
	}
	if err != nil {
		err = fmt.Errorf("write metadata of %s: %w", folder, err)
		r, oerr := s.Open(name)
		if oerr == nil {
			r.Close()
		}
		if !errors.Is(oerr, fs.ErrNotExist) {
			return &unknownOutcomeError{err}
		}
	}
	return err
}

// Load reads the metadata of a checkpoint. Errors are fs.ErrNotExist if the
// folder holds no complete one, *CorruptError if it is damaged.
func Load(s storage.Store, folder string) (*Metadata, error) {
	name := path.Join(folder, MetadataFile)
	b, err := storage.ReadAll(s, name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s of %s holds no complete checkpoint: %w", folder, s.URL(), err)
		}
		return nil, fmt.Errorf("load checkpoint %s: %w", folder, err)
	}
	m, err := Decode(name, b)
	if err != nil {
		return nil, err
	}
	if id, savepoint, ok := ParseFolder(folder); ok && (id != m.Checkpoint || savepoint != m.Savepoint) {
		return nil, &CorruptError{File: name, Reason: fmt.Sprintf("it describes checkpoint %d (savepoint: %t), which its folder is not", m.Checkpoint, m.Savepoint)}
	}
	return m, nil
}

// Newest lists the folders at the root of a store that hold a complete
// checkpoint or savepoint, newest first. Their content is not looked at.
func Newest(s storage.Store) ([]string, error) {
	names, err := s.List("")
	if err != nil {
		return nil, fmt.Errorf("look for checkpoints: %w", err)
	}
	type found struct {
		folder string
		id     int64
	}
	var all []found
	for _, n := range names {
		folder, file, ok := strings.Cut(n, "/")
		if !ok || file != MetadataFile {
			continue
		}
		if id, _, ok := ParseFolder(folder); ok {
			all = append(all, found{folder, id})
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(b.id, a.id) })
	folders := make([]string, len(all))
	for i := range all {
		folders[i] = all[i].folder
	}
	return folders, nil
}

// Locate finds the checkpoint that a path or URL names: the folder of a
// checkpoint, its metadata file, or a store with checkpoints in it, of which
// the newest is taken.
func Locate(url string) (s storage.Store, folder string, err error) {
	trimmed := strings.TrimSuffix(strings.TrimRight(url, "/"), "/"+MetadataFile)
	if i := strings.LastIndexByte(trimmed, '/'); i > 0 {
		if _, _, ok := ParseFolder(trimmed[i+1:]); ok {
			s, err := storage.OpenExisting(trimmed[:i])
			return s, trimmed[i+1:], err
		}
	} else if _, _, ok := ParseFolder(trimmed); ok {
		s, err := storage.OpenExisting(".")
		return s, trimmed, err
	}
	if s, err = storage.OpenExisting(trimmed); err != nil {
		return nil, "", err
	}
	folders, err := Newest(s)
	if err != nil {
		return nil, "", err
	}
	if len(folders) == 0 {
		return nil, "", fmt.Errorf("%s holds no complete checkpoint: give a folder chk-N or savepoint-N-…, or one that contains such folders: %w", url, fs.ErrNotExist)
	}
	return s, folders[0], nil
}
