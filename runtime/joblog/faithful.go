package joblog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Faithful is the store as Flink 1.20 has it. Its weaknesses are part of it:
// records carry neither checksum nor sequence, nothing is ever synced, an event
// whose snapshots never come holds up all that follow, and the first error
// switches it off without a word.
type Faithful struct {
	writer
	folder Folder

	files   []string // to be replayed
	hasAny  bool     // the folder has an entry, whatever it is
	closing chan struct{}

	// Of the writer's goroutine.
	file      File
	fileNo    int
	buf       []byte
	corrupted bool
	taken     uint64
}

var _ Store = (*Faithful)(nil)

const eventFilePrefix = "events."

// OpenFaithful opens the log of a job. The folder belongs to one job; nothing in
// its files says which.
func OpenFaithful(d Folder, cfg Config) (*Faithful, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d = watched{d}
	names, err := d.Names()
	if err != nil {
		return nil, fmt.Errorf("open job log %s: %w", d, err)
	}
	f := &Faithful{folder: d, hasAny: len(names) > 0, closing: make(chan struct{})}
	there := map[string]bool{}
	for _, name := range names {
		if digits, ok := strings.CutPrefix(name, eventFilePrefix); ok {
			if _, err := strconv.Atoi(digits); err == nil {
				there[name] = true
			}
		}
	}
	// A gap ends what is read, while the files behind it still count for the
	// number of the next one.
	for i := 0; there[eventFile(i)]; i++ {
		f.files = append(f.files, eventFile(i))
	}
	f.fileNo = len(there)
	f.prepare(cfg, f)
	go f.run()
	return f, nil
}

func eventFile(n int) string { return eventFilePrefix + strconv.Itoa(n) }

// HasEvents implements Store.
func (f *Faithful) HasEvents() bool { return f.hasAny }

// Replay implements Store.
func (f *Faithful) Replay(fn func(Event) error) error {
	record := uint64(0)
	for _, name := range f.files {
		data, err := f.folder.ReadFile(name)
		if err != nil {
			return fmt.Errorf("replay job log %s: %w", f.folder, err)
		}
		for at := 0; at < len(data); {
			rest := data[at:]
			if len(rest) < 8 {
				break // torn: the next file goes on
			}
			record++
			kind, n := int32(binary.BigEndian.Uint32(rest)), int32(binary.BigEndian.Uint32(rest[4:]))
			if int64(n) > int64(len(rest)-8) {
				break
			}
			var e Event
			switch {
			case n < 0:
				err = fmt.Errorf("length %d", n)
			case kind < int32(KindVertexFinished) || kind > int32(KindJobVertexInitialized):
				err = fmt.Errorf("unknown event type %d", kind)
			default:
				e, err = decodePayload(Kind(kind), rest[8:8+n])
			}
			if err != nil {
				return fmt.Errorf("replay job log %s: %w", f.folder, &DamagedError{name, int64(at), record, err})
			}
			if err := fn(e); err != nil {
				return fmt.Errorf("replay job log %s: %s:%d (record %d): %w", f.folder, name, at, record, err)
			}
			at += 8 + int(n)
		}
	}
	return nil
}

var errNotKept = errors.New("the faithful log knows finished, reset and initialized only")

func (f *Faithful) append(q queued) {
	if f.corrupted {
		return
	}
	if err := f.write(q); err != nil {
		f.corrupt(err)
		return
	}
	f.taken = q.number
	if q.Cut {
		f.cut()
	}
}

func (f *Faithful) write(q queued) error {
	e := q.Event
	if q.Snapshots != nil {
		select {
		case <-q.Snapshots.done:
		case <-f.closing:
			return errors.New("the snapshots of coordinators never came")
		}
		v, ok := e.(VertexFinished)
		if q.Snapshots.err != nil || !ok {
			return fmt.Errorf("snapshots of coordinators: %w", q.Snapshots.err)
		}
		v.Snapshots, v.Snapshotted = q.Snapshots.data, true
		e = v
	}
	if e.Kind() > KindJobVertexInitialized {
		return errNotKept
	}
	payload, err := appendPayload(nil, e)
	if err != nil {
		return err
	}
	if f.file == nil {
		name := eventFile(f.fileNo)
		if f.file, err = f.folder.Create(name); err != nil {
			return err
		}
		f.fileNo++
	}
	var head [8]byte
	binary.BigEndian.PutUint32(head[:], uint32(e.Kind()))
	binary.BigEndian.PutUint32(head[4:], uint32(len(payload)))
	if err := f.put(head[:]); err != nil {
		return err
	}
	return f.put(payload)
}

// put fills the buffer. What is as large as the buffer goes around it and stays
// where the file system keeps it until something else is flushed.
func (f *Faithful) put(b []byte) error {
	if len(b) >= f.cfg.BufferSize {
		if err := f.flush(); err != nil {
			return err
		}
		n, err := f.file.Write(b)
		f.count(func(s *Stats) { s.Bytes += int64(n) })
		return err
	}
	if len(f.buf)+len(b) > f.cfg.BufferSize {
		if err := f.flush(); err != nil {
			return err
		}
	}
	f.buf = append(f.buf, b...)
	return nil
}

func (f *Faithful) flush() error {
	if len(f.buf) == 0 || f.file == nil {
		return nil
	}
	n, err := f.file.Write(f.buf)
	f.count(func(s *Stats) { s.Bytes += int64(n); s.Flushes++ })
	if err != nil {
		return err
	}
	f.buf = f.buf[:0]
	return f.file.Flush()
}

// cut closes the file; the next event begins another one.
func (f *Faithful) cut() {
	err := f.flush()
	if cerr := f.file.Close(); err == nil {
		err = cerr
	}
	f.file = nil
	if err != nil {
		f.corrupt(err)
		return
	}
	f.durable(f.taken)
}

func (f *Faithful) endBatch() {}

func (f *Faithful) tick() {
	if f.corrupted || len(f.buf) == 0 {
		return
	}
	if err := f.flush(); err != nil {
		f.corrupt(err)
		return
	}
	f.durable(f.taken)
}

func (f *Faithful) sync() { f.tick() }

func (f *Faithful) waiting() int { return 0 }

// corrupt drops this event and all that follow.
func (f *Faithful) corrupt(err error) {
	f.corrupted = true
	if f.file != nil {
		_ = f.file.Close() // the first error counts
		f.file = nil
	}
	f.count(func(s *Stats) { s.Errors++; s.Cause, s.UnprotectedSince = err, time.Now() })
}

// Close implements Store.
func (f *Faithful) Close(clear bool) error {
	wait := time.AfterFunc(10*time.Second, func() { close(f.closing) })
	ended, again := f.end(10*time.Second + time.Second)
	if again {
		wait.Stop()
		return nil
	}
	if wait.Stop() {
		close(f.closing)
	}
	if !ended {
		return fmt.Errorf("close job log %s: the writer did not end", f.folder)
	}
	var err error
	if f.file != nil {
		err = f.file.Close()
		f.file = nil
	}
	if clear {
		names, nerr := f.folder.Names()
		err = errors.Join(err, nerr)
		for _, name := range names {
			err = errors.Join(err, f.folder.Remove(name))
		}
		err = errors.Join(err, f.folder.Sync())
	}
	if err != nil {
		return fmt.Errorf("close job log %s: %w", f.folder, err)
	}
	return nil
}
