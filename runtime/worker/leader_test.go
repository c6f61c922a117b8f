package worker

import (
	"context"
	"errors"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
	"benchrun/runtime/exchange"
	"benchrun/runtime/storage"
)

// A worker whose process has seen a newer leadership does not work for an older
// one. Fails if welcome takes any epoch.
func TestStaleMasterIsRefused(t *testing.T) {
	for _, x := range []struct {
		seen, offers int64
		taken        bool
	}{{0, 1, true}, {3, 3, true}, {3, 4, true}, {3, 2, false}} {
		synctest.Test(t, func(t *testing.T) {
			defer storage.DropMemory(t.Name())
			w, m, cfg, err := startWith(t, welcome(x.offers), func(c *Config) { c.MinEpoch, c.Index = x.seen, 2 })
			if (err == nil) != x.taken || err != nil && !errors.Is(err, ErrStaleMaster) {
				t.Errorf("%+v: %v", x, err)
			}
			if err == nil {
				if h, ok := m.messages()[0].(control.Hello); !ok || h.Index != 2 {
					t.Errorf("hello %+v", h)
				}
				if w.Epoch() != x.offers {
					t.Errorf("epoch %d", w.Epoch())
				}
				m.Send(control.Welcome{Epoch: 9, Worker: 8}) // one is enough
				synctest.Wait()
				if w.Epoch() != x.offers || w.Index() != 4 {
					t.Errorf("a second welcome made it epoch %d, index %d", w.Epoch(), w.Index())
				}
				w.Stop()
			}
			synctest.Wait()
			m.Close(false)
			if _, err := os.Stat(cfg.Dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("its folder: %v", err)
			}
		})
	}
}

// A master that answers the call and then says nothing is given up.
func TestSilentMaster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer storage.DropMemory(t.Name())
		begin := time.Now()
		_, m, _, err := startWith(t, func(c net.Conn) *master {
			m := &master{}
			m.Conn = control.NewConn(c, func() {}, func(any) {}, func(error) {})
			return m
		}, nil)
		if err == nil || time.Since(begin) > 2*control.HandshakeTimeout {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		m.Close(false)
	})
}

// slowNetwork takes its time to reach one address.
type slowNetwork struct {
	exchange.Network
	dials chan string
	let   chan struct{}
}

func (s *slowNetwork) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if addr == "slow" {
		s.dials <- addr
		select {
		case <-s.let:
			return nil, errors.New("gone")
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return s.Network.Dial(ctx, addr)
}

// A peer that cannot be reached holds up who wants it and nobody else; two who
// want it dial once. Fails if client dials under the worker's lock.
func TestSlowPeerHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer storage.DropMemory(t.Name())
		slow := &slowNetwork{dials: make(chan string, 10), let: make(chan struct{})}
		w, m, _, err := startWith(t, welcome(1), func(c *Config) { slow.Network, c.Transport = c.Transport, slow })
		if err != nil {
			t.Fatal(err)
		}
		w.mu.Lock()
		w.mu.addrs[1] = "slow"
		w.mu.Unlock()
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := w.client(t.Context(), 1)
				errs <- err
			}()
		}
		synctest.Wait()
		if w.Load(true).Tasks != 0 || w.Index() != 4 { // these take the lock
			t.Error("no answer")
		}
		if n := len(slow.dials); n != 1 {
			t.Errorf("%d dials", n)
		}
		close(slow.let)
		for range 2 {
			if err := <-errs; err == nil {
				t.Error("connected")
			}
		}
		if _, err := w.client(t.Context(), 1); err == nil || len(slow.dials) != 2 {
			t.Errorf("%d dials, %v: one that failed is not tried again", len(slow.dials), err)
		}
		w.Stop()
		m.Close(false)
	})
}
