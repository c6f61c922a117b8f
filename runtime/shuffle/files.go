package shuffle

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// files keeps data files open, one for all readers of a partition. Beyond its
// limit the one unused longest is closed; a file is in use only during a read,
// by one of few goroutines, so there always is one.
type files struct {
	root  *os.Root
	limit int

	mu      sync.Mutex
	open    map[*partition]*openFile
	opening int // files that are about to be open
	turn    uint64
}

type openFile struct {
	f     *os.File
	users int
	turn  uint64 // of the last use
	stale bool   // to be closed after use
}

func newFiles(root *os.Root, limit int) *files {
	return &files{root: root, limit: limit, open: map[*partition]*openFile{}}
}

// acquire gives the open file of a partition, until done.
func (c *files) acquire(p *partition) (*openFile, error) {
	c.mu.Lock()
	c.turn++
	if o := c.open[p]; o != nil {
		o.users++
		o.turn = c.turn
		c.mu.Unlock()
		return o, nil
	}
	evicted := c.evictLocked()
	c.opening++
	c.mu.Unlock()
	if evicted != nil {
		evicted.Close()
	}
	f, err := openData(c.root, p.ID, p.identity, p.length)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opening--
	if err != nil {
		return nil, err
	}
	if o := c.open[p]; o != nil { // another reader of it was faster
		f.Close()
		o.users++
		return o, nil
	}
	o := &openFile{f: f, users: 1, turn: c.turn, stale: p.gone}
	if !o.stale {
		c.open[p] = o
	}
	return o, nil
}

// evictLocked takes out the file unused longest if one more would be too many.
func (c *files) evictLocked() *os.File {
	if len(c.open)+c.opening < c.limit {
		return nil
	}
	var oldest *partition
	for p, o := range c.open {
		if o.users == 0 && (oldest == nil || o.turn < c.open[oldest].turn) {
			oldest = p
		}
	}
	if oldest == nil {
		return nil
	}
	f := c.open[oldest].f
	delete(c.open, oldest)
	return f
}

func (c *files) done(o *openFile) {
	c.mu.Lock()
	o.users--
	closing := o.stale && o.users == 0
	c.mu.Unlock()
	if closing {
		o.f.Close()
	}
}

// forget closes the file of a partition that is gone.
func (c *files) forget(p *partition) {
	c.mu.Lock()
	p.gone = true
	o := c.open[p]
	delete(c.open, p)
	closing := o != nil && o.users == 0
	if o != nil {
		o.stale = true
	}
	c.mu.Unlock()
	if closing {
		o.f.Close()
	}
}

// close closes all files; nobody reads any more.
func (c *files) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.open {
		o.f.Close()
	}
	clear(c.open)
}

// shortage tells whether an error is one of this process, not of the file.
func shortage(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EINTR, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
