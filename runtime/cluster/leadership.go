package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"benchrun/runtime/storage"
)

// Files of leadership in the state folder of a master.
const (
	lockFile   = "leader.lock" // held by the leader as long as its process lives
	epochFile  = "epoch"       // of the newest leadership
	leaderFile = "leader.json" // where workers find the leader
)

// Seals of these files. Epochs go on whatever the folder was used for before.
var (
	sealOfEpoch  = seal{kind: "epoch", version: 1}
	sealOfLeader = seal{kind: "leader", version: 1}
)

// leaderPoll is how often somebody without a leader looks for one.
const leaderPoll = 2 * time.Millisecond

// LostLeadershipError says that a master must not act any more.
type LostLeadershipError struct {
	Epoch int64
	Why   string
}

func (e *LostLeadershipError) Error() string {
	return fmt.Sprintf("the leadership of epoch %d is over: %s", e.Epoch, e.Why)
}

// leadership is the right to run the job of a state folder.
type leadership struct {
	dir   string
	lock  *os.File
	epoch int64
}

// lead waits until no other process leads, and takes the next epoch. It is
// durable before lead returns.
func lead(ctx context.Context, dir string) (*leadership, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("leadership: %w", err)
	}
	l := &leadership{dir: dir}
	for {
		ok, err := l.tryLock()
		if err != nil {
			return nil, fmt.Errorf("leadership: %w", err)
		}
		if ok {
			break
		}
		if !pause(ctx, leaderPoll) {
			return nil, fmt.Errorf("leadership: %w", context.Cause(ctx))
		}
	}
	last, err := l.newest()
	if err == nil {
		l.epoch = last + 1
		err = sealOfEpoch.write(filepath.Join(dir, epochFile), strconv.AppendInt(nil, l.epoch, 10))
	}
	if err != nil {
		l.release()
		return nil, fmt.Errorf("leadership: %w", err)
	}
	dropUnfinished(dir)
	return l, nil
}

// dropUnfinished removes what masters that died in the middle of a write have left.
// It harms nobody, so neither does one that stays.
func dropUnfinished(dir string) {
	_ = storage.DropUnfinished(dir, epochFile, leaderFile, submissionFile, resultName)
}

// tryLock takes the lock if nobody holds it, on the file that has the name now.
func (l *leadership) tryLock() (bool, error) {
	f, err := os.OpenFile(filepath.Join(l.dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	ok, err := lockExclusive(f)
	if err != nil || !ok {
		f.Close()
		return false, err
	}
	l.lock = f
	if l.holds() != nil {
		l.release()
		return false, nil
	}
	return true, nil
}

// holds looks whether the lock is still the one that others would ask for.
func (l *leadership) holds() error {
	mine, err := l.lock.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(filepath.Join(l.dir, lockFile))
	if err != nil {
		return err
	}
	if !os.SameFile(mine, there) {
		return errors.New("the lock file is another one")
	}
	return nil
}

func (l *leadership) newest() (int64, error) {
	name := filepath.Join(l.dir, epochFile)
	b, err := sealOfEpoch.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil || n < 1 || n == math.MaxInt64 {
		return 0, &StateError{name, -1, fmt.Errorf("it holds %q, which is no epoch that another one could follow", b)}
	}
	return n, nil
}

// check tells whether this is still the leadership in force; the error is a
// *LostLeadershipError.
func (l *leadership) check() error {
	switch n, err := l.newest(); {
	case err != nil:
		return &LostLeadershipError{l.epoch, err.Error()}
	case n != l.epoch:
		return &LostLeadershipError{l.epoch, fmt.Sprintf("epoch %d has begun", n)}
	}
	if err := l.holds(); err != nil {
		return &LostLeadershipError{l.epoch, err.Error()}
	}
	return nil
}

// publish tells workers where the leader is.
func (l *leadership) publish(addr string) error {
	if err := l.check(); err != nil {
		return err
	}
	b, err := json.Marshal(leader{Epoch: l.epoch, Addr: addr})
	if err != nil {
		return err
	}
	return sealOfLeader.write(filepath.Join(l.dir, leaderFile), b)
}

func (l *leadership) release() { l.lock.Close() } // and with it the lock

// leader is the content of the leader file.
type leader struct {
	Epoch int64  `json:"epoch"`
	Addr  string `json:"addr"`
}

// findLeader reads who leads; ok is false if nobody ever did.
func findLeader(dir string) (l leader, ok bool, err error) {
	name := filepath.Join(dir, leaderFile)
	b, err := sealOfLeader.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return l, false, nil
	}
	if err == nil {
		if err = json.Unmarshal(b, &l); err != nil {
			err = &StateError{name, -1, err}
		}
	}
	if err != nil {
		return l, false, fmt.Errorf("leader: %w", err)
	}
	return l, true, nil
}

// newerLeads tells whether somebody leads whose epoch is above another.
func newerLeads(dir string, epoch int64) bool {
	l, ok, err := findLeader(dir)
	return err == nil && ok && l.Epoch > epoch
}

// awaitLeader waits for one whose epoch is above another.
func awaitLeader(ctx context.Context, dir string, above int64) (leader, error) {
	for {
		l, ok, err := findLeader(dir)
		if err != nil || ok && l.Epoch > above {
			return l, err
		}
		if !pause(ctx, leaderPoll) {
			return l, context.Cause(ctx)
		}
	}
}

// pause waits; false: the context has ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
