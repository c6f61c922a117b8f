package joblog

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// maxRetained bounds what is kept in memory until the next sync; beyond it the
// disk is asked whatever the policy says.
const maxRetained = 8 << 20

// Hardened is the store that checks what it reads and says when it cannot write.
type Hardened struct {
	writer
	folder Folder

	replay []frame // until Replay
	torn   string  // what was cut off when the log was opened

	// Of the writer's goroutine.
	file      File // nil while there is trouble
	fileNo    uint64
	next      uint64 // sequence
	synced    uint64 // sequence up to which everything is on the disk, whatever counts as durable
	live      *live
	since     int64 // bytes written since the last compaction
	unflushed []byte
	retained  []byte // records that are not durable, for another file; from sequence first on
	first     uint64
	lost      int    // events in retained while there is trouble
	flushed   uint64 // number of the last event that the system has
	taken     uint64 // number of the last event that was encoded
	fenced    bool
	opened    bool // it has a file of its own
}

var _ Store = (*Hardened)(nil)

// OpenHardened opens the log of a job, repairs its torn end and begins a file
// of this master's own. An error leaves the log as it was.
func OpenHardened(d Folder, cfg Config) (*Hardened, error) {
	h, err := openHardened(d, cfg)
	if err != nil {
		return nil, err
	}
	go h.run()
	return h, nil
}

// maxReadings bounds how often a log is read while an older master still writes.
const maxReadings = 10

// openHardened does it without a goroutine. Where another file has come since the
// log was read, it is read again: what a master that still believes to lead has
// put in order anew does not fit what was read.
func openHardened(d Folder, cfg Config) (*Hardened, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	d = watched{d}
	for n := 1; ; n++ {
		h, err := readHardened(d, cfg)
		if errors.Is(err, errOvertaken) && n < maxReadings {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open job log %s: %w", d, err)
		}
		h.opened = true
		h.prepare(cfg, h)
		return h, nil
	}
}

// readHardened reads the log, repairs it and begins a file.
func readHardened(d Folder, cfg Config) (*Hardened, error) {
	c, err := readFolder(d, cfg.Job)
	if err != nil {
		return nil, err
	}
	if (len(c.frames) > 0 || c.epoch > 0) && c.epoch >= cfg.Epoch {
		return nil, &StaleError{fileName(c.last), c.epoch, cfg.Epoch}
	}
	h := &Hardened{folder: d, replay: c.frames, fileNo: c.last, next: c.next, first: c.next, live: newLive()}
	h.cfg = cfg
	for _, f := range c.frames {
		e, err := decodePayload(f.kind, f.payload)
		if err != nil {
			return nil, &DamagedError{f.file, f.offset, f.seq, err}
		}
		h.live.apply(e, f.payload)
	}
	if err := h.repair(c); err != nil {
		return nil, err
	}
	return h, h.begin()
}

// repair makes the folder what was read of it. Everything in it is harmless to
// repeat.
func (h *Hardened) repair(c *contents) error {
	if err := h.folder.Remove(tempFile); err != nil {
		return err
	}
	if c.cut > 0 {
		h.torn = fmt.Sprintf("%d bytes at %s:%d", c.cut, c.tail, c.keep)
	}
	if c.tail != "" {
		// Also when nothing is cut off: what we have read, and go on from, must not
		// be lost with the machine.
		if err := h.folder.Truncate(c.tail, int64(c.keep)); err != nil {
			return err
		}
	}
	for _, name := range c.empty {
		if err := h.folder.Remove(name); err != nil {
			return err
		}
	}
	if err := h.folder.Sync(); err != nil {
		return err
	}
	for _, name := range c.stale {
		if err := h.folder.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

// Torn is what was cut off, and where, as the end of what was written when the
// log was opened, or "".
func (h *Hardened) Torn() string { return h.torn }

// begin makes the next file, with all that is not durable.
func (h *Hardened) begin() error {
	for {
		name := fileName(h.fileNo + 1)
		f, err := h.folder.Create(name)
		if errors.Is(err, fs.ErrExist) {
			if err := h.passBy(name); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		h.fileNo++
		b, err := appendHeader(nil, header{job: h.cfg.Job}, h.cfg.Epoch, h.first, h.synced)
		if err == nil {
			b = append(b, h.retained...)
			_, err = f.Write(b)
		}
		if err == nil {
			err = f.Flush()
		}
		if err == nil {
			err = f.Sync()
		}
		if err == nil {
			err = h.folder.Sync()
		}
		if err != nil {
			_ = f.Close() // the first error counts
			if h.folder.Remove(name) == nil {
				h.fileNo-- // else every try would leave one more
			}
			return fmt.Errorf("job log %s: %w", name, err)
		}
		h.file = f
		h.unflushed, h.retained, h.first, h.synced = h.unflushed[:0], h.retained[:0], h.next, h.next-1
		h.since += int64(len(b))
		h.count(func(s *Stats) { s.Bytes += int64(len(b)); s.Flushes++; s.Syncs++ })
		return nil
	}
}

// passBy goes past a name that is taken. If a newer master has it the writing is
// over for good. Else it is left of an attempt of ours that had failed as far as
// we knew; a compacted file must go then, because it would make void what is
// before it, and what we write next begins where it does. An older master's that
// came after the log was read is to be read, too.
func (h *Hardened) passBy(name string) error {
	data, err := h.folder.ReadFile(name)
	if err != nil {
		return err
	}
	if f, _, err := readFrame(data); err == nil {
		if f.epoch > h.cfg.Epoch {
			h.fenced = true
			return &StaleError{name, f.epoch, h.cfg.Epoch}
		}
		if f.epoch < h.cfg.Epoch && !h.opened {
			return fmt.Errorf("job log %s: %w", name, errOvertaken)
		}
		if head, err := readHeader(f); err == nil && head.replace && f.epoch == h.cfg.Epoch {
			if err := h.folder.Remove(name); err != nil {
				return err
			}
			if err := h.folder.Sync(); err != nil {
				return err
			}
		}
	}
	h.fileNo++
	return nil
}

// HasEvents implements Store.
func (h *Hardened) HasEvents() bool { return len(h.replay) > 0 }

// Replay implements Store.
func (h *Hardened) Replay(fn func(Event) error) error {
	frames := h.replay
	h.replay = nil
	for i, f := range frames {
		frames[i] = frame{}
		e, err := decodePayload(f.kind, f.payload)
		if err == nil {
			err = fn(e)
		}
		if err != nil {
			return fmt.Errorf("replay job log %s: %s:%d (record %d, %s): %w", h.folder, f.file, f.offset, f.seq, f.kind, err)
		}
	}
	return nil
}

func (h *Hardened) waiting() int { return h.lost }

// append encodes an event and writes when the buffer is full or something must
// not wait.
func (h *Hardened) append(q queued) {
	at := len(h.retained)
	h.taken = q.number
	if err := h.encode(q.Event); err != nil {
		// An event that cannot be written leaves the others as they are.
		h.retained = h.retained[:at]
		h.count(func(s *Stats) { s.Errors++; s.Cause = err })
		return
	}
	if h.file == nil {
		h.lost++
		return
	}
	h.unflushed = append(h.unflushed, h.retained[at:]...)
	switch k := q.Event.Kind(); {
	case k == KindEpochStarted, k == KindWorkerSet, k == KindJobFinished, q.Cut && h.cfg.Policy == SyncVertex, len(h.retained) >= maxRetained:
		h.sync()
	case q.Cut, len(h.unflushed) >= h.cfg.BufferSize:
		h.flush()
	}
}

func (h *Hardened) encode(e Event) error {
	b, at := beginFrame(h.retained)
	b, err := appendPayload(b, e)
	if err == nil {
		err = endFrame(b, at, e.Kind(), h.cfg.Epoch, h.next, h.synced)
	}
	if err != nil {
		return err
	}
	h.retained = b
	h.next++
	h.live.apply(e, b[at+frameBytes:])
	return nil
}

func (h *Hardened) endBatch() {
	if h.cfg.Policy == SyncAlways {
		h.sync()
	}
	h.compactIfDue()
}

func (h *Hardened) tick() {
	switch {
	case h.file == nil:
		h.retry()
	case h.cfg.Policy == SyncInterval:
		h.sync()
	default:
		h.flush()
	}
}

// flush hands the buffer to the system.
func (h *Hardened) flush() {
	if h.file == nil {
		return
	}
	if len(h.unflushed) > 0 {
		name := fileName(h.fileNo)
		n, err := h.file.Write(h.unflushed)
		h.since += int64(n)
		if err == nil {
			err = h.file.Flush()
		}
		if err != nil {
			h.fail(fmt.Errorf("job log %s: %w", name, err))
			return
		}
		h.unflushed = h.unflushed[:0]
		h.count(func(s *Stats) { s.Bytes += int64(n); s.Flushes++ })
	}
	h.flushed = h.taken
	if h.cfg.Policy == SyncNone {
		h.settle()
	}
}

// sync makes everything durable that was appended.
func (h *Hardened) sync() {
	if h.file == nil {
		h.retry()
		return
	}
	h.flush()
	switch {
	case h.file == nil:
		return
	case len(h.retained) == 0 && h.cfg.Policy != SyncNone:
		h.durable(h.flushed)
		return
	}
	name := fileName(h.fileNo)
	if err := h.file.Sync(); err != nil {
		h.fail(fmt.Errorf("job log %s: %w", name, err))
		return
	}
	h.synced = h.next - 1
	h.count(func(s *Stats) { s.Syncs++ })
	h.settle()
}

// settle: what was flushed counts as durable.
func (h *Hardened) settle() {
	h.retained, h.first = h.retained[:0], h.next
	h.durable(h.flushed)
}

// fail gives the file up. What is not durable goes into another one: after a
// failed sync nobody knows what the old one holds.
func (h *Hardened) fail(err error) {
	if h.file != nil {
		_ = h.file.Close() // it has failed already
		h.file = nil
	}
	h.lost = max(h.lost, int(h.next-h.first))
	var since time.Time
	h.count(func(s *Stats) {
		s.Errors++
		s.Cause = err
		if s.UnprotectedSince.IsZero() {
			s.UnprotectedSince = time.Now()
		}
		since = s.UnprotectedSince
	})
	if h.cfg.Trouble != nil {
		h.cfg.Trouble(since, err)
	}
}

// retry begins another file after trouble.
func (h *Hardened) retry() {
	if h.fenced {
		return
	}
	h.count(func(s *Stats) { s.Retries++ })
	if err := h.begin(); err != nil {
		h.fail(err)
		return
	}
	h.lost = 0
	h.flushed = h.taken
	h.count(func(s *Stats) { s.UnprotectedSince, s.Cause = time.Time{}, nil })
	h.durable(h.flushed)
	if h.cfg.Trouble != nil {
		h.cfg.Trouble(time.Time{}, nil)
	}
}

// Close implements Store. Once it has returned, a second one does nothing.
func (h *Hardened) Close(clear bool) error {
	if ended, again := h.end(10 * time.Second); again {
		return nil
	} else if !ended {
		return fmt.Errorf("close job log %s: the writer did not end", h.folder)
	}
	if h.file == nil {
		s := h.Stats()
		return fmt.Errorf("close job log %s: %d events are not durable: %w", h.folder, s.Events-s.Durable, s.Cause)
	}
	var err error
	if clear {
		err = h.clear()
	}
	if cerr := h.file.Close(); err == nil {
		err = cerr
	}
	h.file = nil
	if err != nil {
		return fmt.Errorf("close job log %s: %w", h.folder, err)
	}
	return nil
}
