package shuffle

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"benchrun/runtime/exchange"
)

// PartitionID names what one attempt of one producing subtask wrote on one edge.
type PartitionID struct {
	Job     string
	Dataset string // the edge
	Index   int    // producing subtask
	Attempt int
	Epoch   uint64 // of the master that deployed the attempt
}

func (id PartitionID) String() string {
	return fmt.Sprintf("%s/%s/%d@%d.%d", id.Job, id.Dataset, id.Index, id.Epoch, id.Attempt)
}

// Range is a span of subpartitions, both ends included.
type Range struct{ First, Last int }

// KeyPrefix begins the keys under which consumers ask for blocking partitions.
const KeyPrefix = "shuffle:"

// maxName bounds the name of a file and of a folder.
const maxName = 240

// check refuses ids that have no file name.
func (id PartitionID) check() error {
	switch {
	case id.Job == "" || id.Dataset == "":
		return fmt.Errorf("shuffle: partition %s: job and data set must not be empty: %w", id, fs.ErrInvalid)
	case id.Index < 0 || id.Index > 1<<31-1 || id.Attempt < 0 || id.Attempt > 1<<31-1:
		return fmt.Errorf("shuffle: partition %s: index and attempt must be between 0 and 2^31-1: %w", id, fs.ErrInvalid)
	case strings.ContainsRune(id.Job, 0) || strings.ContainsRune(id.Dataset, 0):
		return fmt.Errorf("shuffle: partition %s: a zero byte in a name: %w", id, fs.ErrInvalid)
	case len(escape(id.Job)) > maxName || len(id.base()) > maxName-len(tempPrefix)-len(indexSuffix):
		return fmt.Errorf("shuffle: partition %s: the name is too long for a file: %w", id, fs.ErrInvalid)
	}
	return nil
}

const (
	tempPrefix  = ".tmp-"
	dataSuffix  = ".data"
	indexSuffix = ".index"
)

// folder is where the partition's files are, below the store.
func (id PartitionID) folder() string {
	return escape(id.Job) + "/" + strconv.FormatUint(id.Epoch, 10)
}

func (id PartitionID) base() string {
	return escape(id.Dataset) + "~" + strconv.Itoa(id.Index) + "~" + strconv.Itoa(id.Attempt)
}

func (id PartitionID) file(suffix string) string { return id.folder() + "/" + id.base() + suffix }
func (id PartitionID) temp(suffix string) string {
	return id.folder() + "/" + tempPrefix + id.base() + suffix
}

// parseFile undoes folder and base: the path of a file below the store, without
// its suffix.
func parseFile(job, epoch, base string) (id PartitionID, ok bool) {
	parts := strings.Split(base, "~")
	if len(parts) != 3 {
		return id, false
	}
	var err [5]error
	id.Job, err[0] = unescape(job)
	id.Epoch, err[1] = strconv.ParseUint(epoch, 10, 64)
	id.Dataset, err[2] = unescape(parts[0])
	id.Index, err[3] = strconv.Atoi(parts[1])
	id.Attempt, err[4] = strconv.Atoi(parts[2])
	return id, errors.Join(err[:]...) == nil && id.check() == nil && id.folder() == job+"/"+epoch && id.base() == base
}

// Key is what a consumer asks a worker for: a range of a partition.
func (id PartitionID) Key(r Range) string {
	return fmt.Sprintf("%s%s/%s/%d-%d", KeyPrefix, id.folder(), id.base(), r.First, r.Last)
}

// ParseKey undoes Key.
func ParseKey(key string) (id PartitionID, r Range, err error) {
	rest, ok := strings.CutPrefix(key, KeyPrefix)
	parts := strings.Split(rest, "/")
	if ok = ok && len(parts) == 4; ok {
		id, ok = parseFile(parts[0], parts[1], parts[2])
	}
	if ok {
		first, last, cut := strings.Cut(parts[3], "-")
		var e1, e2 error
		r.First, e1 = strconv.Atoi(first)
		r.Last, e2 = strconv.Atoi(last)
		ok = cut && e1 == nil && e2 == nil
	}
	if !ok {
		return PartitionID{}, Range{}, fmt.Errorf("shuffle: %q is no key of a partition: %w", key, fs.ErrInvalid)
	}
	return id, r, nil
}

// Lost tells which partition is gone if that is what an error says: its producer
// has to run again.
func Lost(err error) (id PartitionID, lost bool) {
	e, ok := errors.AsType[*exchange.PartitionLostError](err)
	if !ok {
		return id, false
	}
	id, _, err = ParseKey(e.Key)
	return id, err == nil
}

func lostError(id PartitionID, r Range, cause error) error {
	return &exchange.PartitionLostError{Key: id.Key(r), Err: cause}
}

const hex = "0123456789ABCDEF"

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

// escape makes a file name of any string; no result begins with a dot.
func escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; plain(c) || c == '.' && i > 0 {
			b.WriteByte(c)
		} else {
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

func unescape(s string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			b.WriteByte(s[i])
			continue
		}
		if i+3 > len(s) {
			return "", fmt.Errorf("%q ends within an escape", s)
		}
		n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("%q: %w", s, err)
		}
		b.WriteByte(byte(n))
		i += 2
	}
	return b.String(), nil
}
