package joblog

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// part is a file of the log as it was found.
type part struct {
	number  uint64
	name    string
	data    []byte
	good    bool // it has a header
	why     error
	header  header
	epoch   uint64
	first   uint64 // sequence of the first record
	synced  uint64 // by the header
	body    int    // where it begins
	version byte   // as it stands in the first record; 0: there is none
}

// contents is what was read of a folder.
type contents struct {
	frames []frame
	last   uint64 // number of the newest file; 0: there is none
	epoch  uint64 // of the newest record
	next   uint64 // sequence of the next record

	stale []string // files that are replaced or void, oldest first
	empty []string // files without a header: beginnings that failed
	tail  string   // the last file, "" if there is none
	keep  int      // bytes of it that are good
	cut   int      // bytes behind them, the torn end
}

// readFolder reads and checks a log and changes nothing.
func readFolder(d Folder, job string) (*contents, error) {
	parts, err := readParts(d)
	if err != nil {
		return nil, err
	}
	c := &contents{next: 1}
	var live []*part
	for _, p := range parts {
		c.last = p.number
		if p.version != 0 && p.version != formatVersion {
			return nil, &VersionError{p.name, int(p.version), formatVersion}
		}
		if !p.good {
			if !tornHeader(p.data) {
				return nil, &DamagedError{File: p.name, Err: fmt.Errorf("the file has no header: %w", p.why)}
			}
			c.empty = append(c.empty, p.name)
			continue
		}
		switch {
		case p.header.job != job:
			return nil, &ForeignError{p.name, p.header.job, job}
		case p.epoch < c.epoch:
			// A master that had lost its leadership began another file.
			c.stale = append(c.stale, p.name)
			continue
		case p.header.replace:
			for _, old := range live {
				c.stale = append(c.stale, old.name)
			}
			live = nil
		}
		c.epoch = p.epoch
		live = append(live, p)
	}
	for i, p := range live {
		if i == 0 {
			if !p.header.replace && p.first != 1 {
				return nil, &DamagedError{File: p.name, Err: fmt.Errorf("the log begins with record %d, the files before are missing", p.first)}
			}
			c.next = p.first
		}
		limit := ^uint64(0)
		if i+1 < len(live) {
			limit = live[i+1].first
		}
		at, bad := c.readRecords(p, limit)
		c.tail, c.keep = p.name, at
		switch {
		case bad == nil:
		case limit != ^uint64(0) && c.next == limit:
			// The next file repeats what follows here.
		case limit == ^uint64(0):
			c.cut = len(p.data) - at
		default:
			return nil, &DamagedError{p.name, int64(at), c.next, bad}
		}
		if limit != ^uint64(0) && c.next < limit {
			return nil, &DamagedError{p.name, int64(at), c.next, fmt.Errorf("records %d to %d are missing", c.next, limit-1)}
		}
		if limit != ^uint64(0) && c.next > limit {
			return nil, &DamagedError{p.name, 0, p.first, fmt.Errorf("the next file goes on with record %d, from before this one", limit)}
		}
		if limit == ^uint64(0) {
			if err := p.endsTooEarly(at, c.next, bad); err != nil {
				return nil, &DamagedError{p.name, int64(at), c.next, err}
			}
		}
	}
	return c, nil
}

// endsTooEarly tells whether the last file, which is good up to a place where a
// record is due, had more on the disk once: then it is no torn end that begins
// there. The header says so, or a good record behind the place.
func (p *part) endsTooEarly(at int, due uint64, bad error) error {
	if bad == nil {
		bad = errors.New("the file ends")
	}
	if p.synced >= due {
		return fmt.Errorf("%w, and records up to %d were on the disk when the file got its name", bad, p.synced)
	}
	for at < len(p.data) {
		i := bytes.Index(p.data[at:], magic[:])
		if i < 0 {
			return nil
		}
		at += i
		f, n, err := readFrame(p.data[at:])
		switch {
		case err != nil || f.epoch != p.epoch:
			at++
			continue
		case f.synced >= due:
			return fmt.Errorf("%w, and record %d at offset %d says that records up to %d were on the disk", bad, f.seq, at, f.synced)
		}
		at += n
	}
	return nil
}

// readRecords takes the records of a file whose sequence is below a limit. It
// returns where it stopped and, if that is not the file's end, why.
func (c *contents) readRecords(p *part, limit uint64) (at int, bad error) {
	for at = p.body; at < len(p.data); {
		if c.next == limit {
			return at, fmt.Errorf("record %d stands in the next file", limit)
		}
		f, n, err := readFrame(p.data[at:])
		switch {
		case err != nil:
			return at, err
		case f.seq != c.next:
			return at, fmt.Errorf("record %d where %d is due", f.seq, c.next)
		case f.epoch != p.epoch:
			return at, fmt.Errorf("record of epoch %d in a file of epoch %d", f.epoch, p.epoch)
		}
		f.file, f.offset = p.name, int64(at)
		c.frames = append(c.frames, f)
		c.next++
		at += n
	}
	return at, nil
}

func readParts(d Folder) ([]*part, error) {
	names, err := d.Names()
	if err != nil {
		return nil, err
	}
	var parts []*part
	for _, name := range names {
		n, ok := fileNumber(name)
		if !ok {
			continue
		}
		data, err := d.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("job log: read %s: %w", name, err)
		}
		p := &part{number: n, name: name, data: data}
		if len(data) > 4 && bytes.HasPrefix(data, magic[:]) {
			p.version = data[4]
		}
		var f frame
		if f, p.body, p.why = readFrame(data); p.why == nil {
			if p.header, p.why = readHeader(f); p.why == nil {
				p.good, p.epoch, p.first, p.synced = true, f.epoch, f.seq, f.synced
			}
		}
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b *part) int {
		if a.number < b.number {
			return -1
		}
		return 1
	})
	return parts, nil
}

// tornHeader tells whether a file without a good header can be what a crash
// left of a new one: it begins like one, or with zeros that no bytes came for, and holds no record that
// somebody may want.
func tornHeader(b []byte) bool {
	for i, x := range b[:min(len(b), len(magic))] {
		if x != magic[i] && x != 0 {
			return false
		}
	}
	for at := 1; ; at++ {
		i := bytes.Index(b[min(at, len(b)):], magic[:])
		if i < 0 {
			return true
		}
		at += i
		if _, _, err := readFrame(b[at:]); err == nil {
			return false
		}
	}
}
