package state

import (
	"encoding/binary"
	"fmt"
)

// Mode says how the items of a list state are dealt out at a restore.
type Mode uint8

// Modes of list state; the numbers are those of the checkpoint format.
const (
	Split     Mode = iota // each item to one subtask, round robin
	Union                 // every subtask gets the items of all
	Broadcast             // every subtask has the same items and gets those of one
)

func (m Mode) String() string {
	switch m {
	case Split:
		return "split"
	case Union:
		return "union"
	case Broadcast:
		return "broadcast"
	}
	return "unknown"
}

// List is the list state of one operator in one subtask under one name.
type List struct {
	Name  string
	Mode  Mode
	Items [][]byte
}

// Lists are the list states of one operator in one subtask. They belong to the
// subtask's goroutine.
type Lists struct {
	all []*List
}

// Get gives the list of that name, made empty on first use.
func (l *Lists) Get(name string, mode Mode) (*List, error) {
	for _, s := range l.all {
		if s.Name == name {
			if s.Mode != mode {
				return nil, fmt.Errorf("list state %q has mode %s, %s was asked for", name, s.Mode, mode)
			}
			return s, nil
		}
	}
	s := &List{Name: name, Mode: mode}
	l.all = append(l.all, s)
	return s, nil
}

// All gives the lists in the order of their first use.
func (l *Lists) All() []*List { return l.all }

// AppendItems encodes items: each a varint length and its bytes.
func AppendItems(b []byte, items [][]byte) []byte {
	for _, it := range items {
		b = binary.AppendUvarint(b, uint64(len(it)))
		b = append(b, it...)
	}
	return b
}

// DecodeItems reads what AppendItems wrote. The items alias b.
func DecodeItems(b []byte) ([][]byte, error) {
	var items [][]byte
	for size := len(b); len(b) > 0; {
		n, w := binary.Uvarint(b)
		if w <= 0 || n > uint64(len(b)-w) {
			return nil, fmt.Errorf("list state: bad length of item %d at byte %d", len(items), size-len(b))
		}
		end := w + int(n)
		items = append(items, b[w:end:end])
		b = b[end:]
	}
	return items, nil
}

// Redistribute deals the items that the old subtasks held out to the new ones.
//
// Split leaves every item where it was if the parallelism is the same;
// otherwise item i of all, in order of subtasks, goes to subtask i mod
// parallelism, so that shares differ by one item at most. An old subtask that
// had finished is to be left out of old, not passed empty, for then its peers'
// items are spread over all new ones. Items may be anything: the bytes, or
// where they are to be read.
func Redistribute[T any](old [][]T, mode Mode, parallelism int) [][]T {
	dealt := make([][]T, parallelism)
	if len(old) == 0 {
		return dealt
	}
	switch mode {
	case Split:
		if len(old) == parallelism {
			copy(dealt, old)
			return dealt
		}
		i := 0
		for _, items := range old {
			for _, it := range items {
				dealt[i%parallelism] = append(dealt[i%parallelism], it)
				i++
			}
		}
	case Union:
		var all []T
		for _, items := range old {
			all = append(all, items...)
		}
		for i := range dealt {
			dealt[i] = all[:len(all):len(all)]
		}
	case Broadcast:
		for i := range dealt {
			dealt[i] = old[i%len(old)]
		}
	}
	return dealt
}
