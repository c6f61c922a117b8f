package cluster

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"benchrun/runtime/storage"
	"benchrun/runtime/timeline"
)

func mustLead(t *testing.T, dir string) *leadership {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	l, err := lead(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// One leads at a time, each with the next epoch. What leaders that were killed
// have not written to the end goes. Fails if lead does not wait for the lock, does
// not count up, or sweeps nothing.
func TestLeadership(t *testing.T) {
	dir := t.TempDir()
	first := mustLead(t, dir)
	if first.epoch != 1 || first.check() != nil {
		t.Fatalf("epoch %d, %v", first.epoch, first.check())
	}
	if err := first.publish("addr"); err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if l, err := lead(short, dir); err == nil {
		t.Fatalf("two lead: epoch %d", l.epoch)
	}
	first.release()
	half, others := filepath.Join(dir, ".result.json-123"), filepath.Join(dir, ".other.json-123")
	for _, name := range []string{half, others} {
		if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second := mustLead(t, dir)
	defer second.release()
	if second.epoch != 2 {
		t.Errorf("epoch %d after 1", second.epoch)
	}
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the half of a result: %v", err)
	}
	if _, err := os.Stat(others); err != nil {
		t.Error(err)
	}
	if l, err := awaitLeader(t.Context(), dir, 0); err != nil || l != (leader{1, "addr"}) {
		t.Errorf("leader %+v, %v", l, err)
	}
}

// A lock that was taken away shows to who held it: it must not publish, and
// its checkpoints must not become complete. Fails if check compares only one
// of epoch and lock file.
func TestLostLeadership(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, dir string){
		"lock file removed": func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, lockFile)); err != nil {
				t.Fatal(err)
			}
		},
		"lock file replaced": func(t *testing.T, dir string) {
			if err := storage.WriteFile(filepath.Join(dir, lockFile), nil); err != nil {
				t.Fatal(err)
			}
		},
		"epoch counted up": func(t *testing.T, dir string) {
			if err := sealOfEpoch.write(filepath.Join(dir, epochFile), []byte("2")); err != nil {
				t.Fatal(err)
			}
		},
		"epoch damaged": func(t *testing.T, dir string) {
			if err := storage.WriteFile(filepath.Join(dir, epochFile), []byte("x")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := mustLead(t, dir)
			defer l.release()
			take(t, dir)
			var lost *LostLeadershipError
			if err := l.check(); !errors.As(err, &lost) || lost.Epoch != 1 {
				t.Errorf("check: %v", err)
			}
			if err := l.publish("addr"); !errors.As(err, &lost) {
				t.Errorf("publish: %v", err)
			}
			if _, ok, err := findLeader(dir); ok || err != nil {
				t.Errorf("a leader was published: %v, %v", ok, err)
			}
		})
	}
}

// Bad files of the state folder are refused with their names, never a panic. Fails if
// newest takes the last epoch that there can be, behind which they get negative.
func TestBadStateFolder(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := readSubmission(dir, "a"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no submission: %v", err)
	}
	s := &submission{ID: "a", Options: map[string]any{"execution.checkpointing.interval": "1 s", "execution.checkpointing.num-retained": 3}}
	if err := s.write(dir); err != nil {
		t.Fatal(err)
	}
	if _, v, err := readSubmission(dir, "a"); err != nil || v.Map()["execution.checkpointing.num-retained"] != int64(3) {
		t.Errorf("%v, %v", v.Map(), err) // fails if numbers come back as floats
	}
	if _, _, err := readSubmission(dir, "b"); err == nil {
		t.Error("the job of another cluster was taken")
	}
	if err := os.WriteFile(filepath.Join(dir, submissionFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readSubmission(dir, "a"); err == nil {
		t.Error("half a file was read")
	}
	if err := os.WriteFile(filepath.Join(dir, leaderFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := awaitLeader(t.Context(), dir, 0); err == nil {
		t.Error("half a leader was found")
	}
	for _, epoch := range []string{"0", "-5", "", "9223372036854775807", "9223372036854775808"} {
		if err := sealOfEpoch.write(filepath.Join(dir, epochFile), []byte(epoch)); err != nil {
			t.Fatal(err)
		}
		var unread *StateError
		if l, err := lead(t.Context(), dir); !errors.As(err, &unread) || unread.File != filepath.Join(dir, epochFile) {
			t.Errorf("epoch %q: %+v, %v", epoch, l, err)
		}
	}
}

// The origin that a process estimates is never further off than the bound that
// it records, whatever the two ways take. Fails if the bound is a quarter of
// the round, or the half is added instead of taken away.
func TestEstimateOrigin(t *testing.T) {
	origin := time.Now().Add(-time.Hour)
	for _, ways := range [][2]time.Duration{{0, 0}, {3 * time.Millisecond, 0}, {0, 3 * time.Millisecond}, {time.Millisecond, 2 * time.Millisecond}} {
		n := 0
		got, bound, err := estimateOrigin(func() (time.Duration, error) {
			n++
			<-time.After(ways[0])
			at := time.Since(origin)
			<-time.After(ways[1])
			return at, nil
		})
		if err != nil || n != clockRounds {
			t.Fatalf("%d rounds, %v", n, err)
		}
		if off := got.Sub(origin).Abs(); off > bound {
			t.Errorf("off by %v, bound %v", off, bound)
		}
	}
	if _, _, err := estimateOrigin(func() (time.Duration, error) { return 0, os.ErrClosed }); !errors.Is(err, os.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// Where there is one clock for all processes, an origin survives the way
// through its reading.
func TestSystemClock(t *testing.T) {
	if _, ok := systemClock(); !ok {
		t.Skip("this system has no clock that processes are known to share")
	}
	now, at, _ := pinSystemClock()
	origin := now.Add(-time.Minute)
	got, ok := originFromSystemClock(at - time.Minute)
	if !ok || got.Sub(origin).Abs() > 5*time.Millisecond {
		t.Errorf("off by %v", got.Sub(origin))
	}
}

// A process that starts in the middle of a storage fault sees the rest of it.
// Fails if the request does not carry it, or who starts does not heed it.
func TestStorageFaultReachesNewcomers(t *testing.T) {
	c := &Processes{sub: &submission{}, cfg: Config{Timeline: timeline.New()}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c.listener = l
	if r := c.request("worker-0", 0); r.Fault != "" {
		t.Errorf("a fault before there is one: %+v", r)
	}
	if err := c.FailStorage("full", time.Hour); err != nil {
		t.Fatal(err)
	}
	n := &node{nodeRequest: c.request("worker-1", 1)}
	if err := n.openStorage(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if got := n.store.Active(); got != storage.FaultFull {
		t.Errorf("the newcomer's storage has the fault %q", got)
	}
	c.mu.faultEnd = time.Now()
	if r := c.request("worker-2", 2); r.Fault != "" {
		t.Errorf("a fault after it is over: %+v", r)
	}
	if err := c.FailStorage("odd", time.Second); err == nil {
		t.Error("an unknown fault was taken")
	}
}
