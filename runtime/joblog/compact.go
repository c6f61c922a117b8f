package joblog

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// compactIfDue compacts when the files have grown to a multiple of what counts.
func (h *Hardened) compactIfDue() {
	if h.file == nil || h.since < max(h.cfg.CompactBytes, 2*h.live.bytes) {
		return
	}
	h.sync()
	if h.file == nil || len(h.retained) > 0 {
		return
	}
	if err := h.compact(); err != nil {
		h.fail(fmt.Errorf("compact job log: %w", err))
	}
}

// compact writes the live events into a new file that stands for all before it.
// Everything before is durable. After an error the old files are still there,
// and the new one, if it is visible, says the same as they do.
func (h *Hardened) compact() error {
	if err := h.folder.Remove(tempFile); err != nil {
		return err
	}
	frames := h.live.frames(h.cfg.Epoch, h.next)
	b, err := appendHeader(nil, header{h.cfg.Job, true}, h.cfg.Epoch, h.next, h.next+uint64(len(frames))-1)
	if err != nil {
		return err
	}
	for _, f := range frames {
		var at int
		b, at = beginFrame(b)
		b = append(b, f.payload...)
		if err := endFrame(b, at, f.kind, f.epoch, f.seq, h.synced); err != nil {
			return err
		}
	}
	f, err := h.folder.Create(tempFile)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = h.adopt(f, uint64(len(frames)))
	}
	if err != nil {
		_ = f.Close() // the first error counts
		return err
	}
	h.since = 0
	h.count(func(s *Stats) { s.Bytes += int64(len(b)); s.Flushes++; s.Syncs++; s.Compactions++ })
	return h.removeOld()
}

// adopt gives the compacted file its name and goes on in it. If nobody knows
// whether it got it, passBy finds out.
func (h *Hardened) adopt(f File, records uint64) error {
	for {
		name := fileName(h.fileNo + 1)
		err := h.folder.Publish(tempFile, name)
		if errors.Is(err, fs.ErrExist) {
			if err := h.passBy(name); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		// The name is visible, so the sequence goes on behind its records whatever
		// happens now.
		h.fileNo++
		h.next += records
		h.first = h.next
		if err := h.folder.Sync(); err != nil {
			return err
		}
		old := h.file
		h.file = f
		return old.Close()
	}
}

// removeOld deletes the files that the current one stands for, newest last, so
// that what is left after a crash is still a whole log.
func (h *Hardened) removeOld() error {
	numbers, err := fileNumbers(h.folder)
	if err != nil {
		return err
	}
	for _, n := range numbers {
		if n >= h.fileNo {
			break
		}
		if err := h.folder.Remove(fileName(n)); err != nil {
			return err
		}
	}
	return nil
}

func fileNumbers(d Folder) ([]uint64, error) {
	names, err := d.Names()
	if err != nil {
		return nil, err
	}
	var numbers []uint64
	for _, name := range names {
		if n, ok := fileNumber(name); ok {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, nil
}

// clear removes the log of a job that is over. A crash in between leaves a whole
// log, which says that the job is over.
func (h *Hardened) clear() error {
	if err := h.compact(); err != nil {
		return err
	}
	return h.folder.Remove(fileName(h.fileNo))
}

// Wipe removes a log, whatever is in it, oldest file first: it is how a job
// begins from scratch whose log is damaged or not its own. A crash in between
// leaves the end of a log, which without its beginning is refused, never
// replayed.
func Wipe(d Folder) error {
	d = watched{d}
	numbers, err := fileNumbers(d)
	if err != nil {
		return err
	}
	if err := d.Remove(tempFile); err != nil {
		return fmt.Errorf("wipe job log %s: %w", d, err)
	}
	for _, n := range numbers {
		if err := d.Remove(fileName(n)); err != nil {
			return fmt.Errorf("wipe job log %s: %w", d, err)
		}
	}
	if err := d.Sync(); err != nil {
		return fmt.Errorf("wipe job log %s: %w", d, err)
	}
	return nil
}
