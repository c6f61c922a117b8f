package source

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
)

// Enumerator decides which reader reads which split. It is pure: what it wants
// done it tells the Assigner, in the call.
type Enumerator interface {
	// AddReader is told of a reader that has registered.
	AddReader(a Assigner, subtask int)
	// HandleRequest is told that a reader asks for a split.
	HandleRequest(a Assigner, subtask int)
	// AddSplitsBack returns splits that a failed reader did not keep. The
	// reader is not registered now.
	AddSplitsBack(splits []Split, subtask int)
	// Take removes splits that somebody is known to have, and returns them.
	Take(ids map[string]bool) []Split
	// Snapshot gives the bytes from which the enumerator can be made again;
	// splits that readers have are not in it.
	Snapshot() []byte
}

// Assigner carries out what an enumerator decides.
type Assigner interface {
	// Parallelism is the number of readers there will be.
	Parallelism() int
	// Registered lists the readers that have registered, in order.
	Registered() []int
	// Assign hands splits to a registered reader.
	Assign(subtask int, splits []Split)
	// NoMoreSplits tells a registered reader that it will get no more.
	NoMoreSplits(subtask int)
}

// NewSplits gives fresh splits ids by their order.
func NewSplits(data [][]byte) []Split {
	splits := make([]Split, len(data))
	for i, d := range data {
		splits[i] = Split{ID: strconv.Itoa(i), Data: d}
	}
	return splits
}

// static hands out everything at registration: the k-th split goes to subtask
// k mod parallelism.
type static struct {
	left []numbered
	out  int // of left, handed out and not yet taken away

	// shares are the places in left of each subtask's splits, so that thousands of
	// readers do not look through all of them. nil: to be made.
	shares      map[int][]int
	parallelism int // of shares
}

// numbered is a split with its place in the source's list.
type numbered struct {
	Split
	n   uint32
	out bool
}

// NewStatic makes an enumerator that hands each reader its share as soon as it
// registers.
func NewStatic(splits []Split) Enumerator { return &static{left: number(splits)} }

// RestoreStatic makes it from a snapshot.
func RestoreStatic(snapshot []byte) (Enumerator, error) {
	left, err := decodeNumbered(snapshot)
	return &static{left: left}, err
}

func number(splits []Split) []numbered {
	ns := make([]numbered, len(splits))
	for i, s := range splits {
		ns[i] = numbered{Split: s, n: uint32(i)}
	}
	return ns
}

func (e *static) AddReader(a Assigner, subtask int) {
	if e.shares == nil || e.parallelism != a.Parallelism() {
		e.share(a.Parallelism())
	}
	var mine []Split
	for _, i := range e.shares[subtask] {
		mine = append(mine, e.left[i].Split)
		e.left[i] = numbered{out: true}
	}
	delete(e.shares, subtask)
	e.out += len(mine)
	if e.out > len(e.left)/2 {
		e.tidy()
	}
	if len(mine) > 0 {
		a.Assign(subtask, mine)
	}
	a.NoMoreSplits(subtask)
}

func (e *static) share(parallelism int) {
	e.tidy()
	e.shares, e.parallelism = map[int][]int{}, parallelism
	for i, s := range e.left {
		owner := int(s.n) % parallelism
		e.shares[owner] = append(e.shares[owner], i)
	}
}

// tidy takes away what was handed out.
func (e *static) tidy() {
	e.left = slices.DeleteFunc(e.left, func(s numbered) bool { return s.out })
	e.out, e.shares = 0, nil
}

// HandleRequest: a reader that asks has been told already.
func (e *static) HandleRequest(a Assigner, subtask int) { a.NoMoreSplits(subtask) }

// AddSplitsBack keeps them for the same subtask, which registers again.
func (e *static) AddSplitsBack(splits []Split, subtask int) {
	for _, s := range splits {
		// The number decides who gets it; the subtask's own does.
		e.left = append(e.left, numbered{Split: s, n: uint32(subtask)})
		if e.shares != nil {
			owner := subtask % e.parallelism
			e.shares[owner] = append(e.shares[owner], len(e.left)-1)
		}
	}
}

// Take implements Enumerator.
func (e *static) Take(ids map[string]bool) (taken []Split) {
	e.tidy()
	e.left, taken = take(e.left, ids)
	return taken
}

func take(left []numbered, ids map[string]bool) (rest []numbered, taken []Split) {
	rest = slices.DeleteFunc(left, func(s numbered) bool {
		if ids[s.ID] {
			taken = append(taken, s.Split)
		}
		return ids[s.ID]
	})
	return rest, taken
}

func (e *static) Snapshot() []byte {
	e.tidy()
	return encodeNumbered(e.left)
}

// onRequest hands out one split for each request.
type onRequest struct {
	left []numbered
}

// NewOnRequest makes an enumerator that hands out one split whenever a reader
// asks, so that fast readers get more.
func NewOnRequest(splits []Split) Enumerator { return &onRequest{left: number(splits)} }

// RestoreOnRequest makes it from a snapshot.
func RestoreOnRequest(snapshot []byte) (Enumerator, error) {
	left, err := decodeNumbered(snapshot)
	return &onRequest{left: left}, err
}

func (e *onRequest) AddReader(Assigner, int) {}

func (e *onRequest) HandleRequest(a Assigner, subtask int) {
	if len(e.left) == 0 {
		a.NoMoreSplits(subtask)
		return
	}
	next := e.left[0]
	e.left = e.left[1:]
	a.Assign(subtask, []Split{next.Split})
}

// AddSplitsBack puts them first: they were due before the others.
func (e *onRequest) AddSplitsBack(splits []Split, _ int) {
	e.left = append(number(splits), e.left...)
}

// Take implements Enumerator.
func (e *onRequest) Take(ids map[string]bool) (taken []Split) {
	e.left, taken = take(e.left, ids)
	return taken
}

func (e *onRequest) Snapshot() []byte { return encodeNumbered(e.left) }

// encodeNumbered: count, then number (4), id, data, each of the latter with a
// varint length.
func encodeNumbered(splits []numbered) []byte {
	b := binary.AppendUvarint(nil, uint64(len(splits)))
	for _, s := range splits {
		b = binary.LittleEndian.AppendUint32(b, s.n)
		b = binary.AppendUvarint(b, uint64(len(s.ID)))
		b = append(b, s.ID...)
		b = binary.AppendUvarint(b, uint64(len(s.Data)))
		b = append(b, s.Data...)
	}
	return b
}

func decodeNumbered(b []byte) ([]numbered, error) {
	size := len(b)
	bad := func(what string) ([]numbered, error) {
		return nil, fmt.Errorf("state of a split enumerator: %s at byte %d of %d", what, size-len(b), size)
	}
	count, n := binary.Uvarint(b)
	if n <= 0 || count > uint64(len(b)) {
		return bad("bad number of splits")
	}
	b = b[n:]
	splits := make([]numbered, 0, count)
	for range count {
		if len(b) < 4 {
			return bad("a split is cut")
		}
		s := numbered{n: binary.LittleEndian.Uint32(b)}
		b = b[4:]
		for _, field := range []func(p []byte){
			func(p []byte) { s.ID = string(p) },
			func(p []byte) { s.Data = slices.Clone(p) },
		} {
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return bad("a split is cut")
			}
			field(b[n : n+int(length)])
			b = b[n+int(length):]
		}
		splits = append(splits, s)
	}
	if len(b) > 0 {
		return bad("bytes beyond the last split")
	}
	return splits, nil
}
