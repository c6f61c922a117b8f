package cluster

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"benchrun/runtime/control"
)

// What is due happens when it is due, side by side; what is not yet due when the
// cluster is closed never does, and close waits for what has begun.
//
// Fails if close does not stop the timers, does not wait, or forgets to count a
// timer that it stopped (then it waits for ever).
func TestAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a afterwards
		begin := time.Now()
		happened := map[string]time.Duration{}
		said := make(chan string)
		goOn := make(chan struct{})
		a.do(time.Second, func() { said <- "first" })
		a.do(2*time.Second, func() {
			said <- "slow"
			<-goOn
			happened["slow is over"] = time.Since(begin)
		})
		a.do(3*time.Second, func() { said <- "side by side" })
		a.do(time.Hour, func() { t.Error("what was due after the end happened") })
		for range 3 {
			happened[<-said] = time.Since(begin)
		}
		time.AfterFunc(time.Minute, func() { close(goOn) })
		a.close()
		happened["closed"] = time.Since(begin)
		want := map[string]time.Duration{
			"first": time.Second, "slow": 2 * time.Second, "side by side": 3 * time.Second, "slow is over": 63 * time.Second, "closed": 63 * time.Second,
		}
		if fmt.Sprint(happened) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", happened, want)
		}
		a.do(0, func() { t.Error("a closed cluster did something") })
		a.close() // again
		<-time.After(2 * time.Hour)
	})
}

// A timer that is due while the cluster closes comes first, and is waited for, or
// does nothing.
//
// Fails if close does not wait for timers that it could not stop any more.
func TestAfterwardsFiresWhileClosing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			var a afterwards
			var closed atomic.Bool
			a.do(time.Second, func() {
				runtime.Gosched()
				if closed.Load() {
					t.Error("it acted after close had returned")
				}
			})
			<-time.After(time.Second) // both are due now
			a.close()
			closed.Store(true)
			synctest.Wait()
		}
	})
}

// The end of a job is told once. Fails if a later one takes the place of the
// first, or closes the channel again.
func TestOutcomeIsToldOnce(t *testing.T) {
	first := errors.New("first")
	for _, want := range []error{nil, first} {
		o := newOutcome()
		select {
		case <-o.Done():
			t.Fatal("it is over before its end")
		default:
		}
		if o.over() || o.Err() != nil {
			t.Error("an outcome before the end")
		}
		o.end(want)
		o.end(errors.New("second"))
		o.end(nil)
		<-o.Done()
		if !o.over() || o.Err() != want {
			t.Errorf("%v, want %v", o.Err(), want)
		}
	}
}

// Who needs a leader gets the newest, and waits no longer than there is hope.
//
// Fails if an older epoch takes the seat, if one that has left another's seat
// empties it, or if a wait does not end with job, cluster or context.
func TestSeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s seat[string]
		job := newOutcome()
		if !s.take(1, "first") || s.take(1, "again") {
			t.Error("an epoch was taken twice, or never")
		}
		if l, err := s.awaitFor(t.Context(), job); l != "first" || err != nil {
			t.Error(l, err)
		}
		got := make(chan string, 1)
		go func() {
			l, epoch, err := s.await(t.Context(), 1)
			got <- fmt.Sprint(l, epoch, err)
		}()
		s.leave("first")
		s.leave("")
		synctest.Wait()
		if l, epoch := s.now(); l != "" || epoch != 1 || len(got) > 0 {
			t.Errorf("%q of epoch %d after it has left", l, epoch)
		}
		if !s.take(3, "third") || s.take(2, "second") {
			t.Error("epochs went back")
		}
		if x := <-got; x != "third3 <nil>" {
			t.Error(x)
		}
		s.leave("first") // long gone
		if l, _ := s.now(); l != "third" {
			t.Errorf("%q leads", l)
		}
		s.leave("third")
		short, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("no more time"))
		defer cancel()
		if _, _, err := s.await(short, 0); err == nil || err.Error() != "no master leads: no more time" {
			t.Error(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := s.awaitFor(t.Context(), job)
			ended <- err
		}()
		broken := errors.New("it broke")
		job.end(broken)
		if err := <-ended; !errors.Is(err, errJobEnded) || !errors.Is(err, broken) {
			t.Error(err)
		}
		go func() {
			_, _, err := s.await(t.Context(), 0)
			ended <- err
		}()
		synctest.Wait()
		s.close()
		if err := <-ended; !errors.Is(err, errClusterClosed) || s.take(9, "late") {
			t.Error(err)
		}
	})
}

// What workers that are gone have counted is kept, once.
func TestRosterKeepsCounters(t *testing.T) {
	var r roster[string]
	for _, name := range []string{"a", "b", "c"} {
		r.next()
		r.join(name)
	}
	r.leave("b", control.Load{Tasks: 3, SinkRecords: 5, NetBytes: 7, QueuedBytes: 11})
	r.leave("b", control.Load{SinkRecords: 500}) // its process is seen to end, too
	s := r.status()
	s.add(control.Load{Tasks: 1, SinkRecords: 100, NetBytes: 1000, QueuedBytes: 1})
	if got := fmt.Sprint(r.all(), r.size(), r.next()); got != "[a c] 3 3" || s.SinkRecords != 105 || s.NetBytes != 1007 || s.QueuedBytes != 1 || s.WorkersWithTasks != 1 {
		t.Errorf("%s, %+v", got, s)
	}
}

func TestVictim(t *testing.T) {
	live := []string{"a", "b", "c", "d"}
	for _, x := range []struct {
		tasks []int
		i     int
		want  string
	}{
		{[]int{0, 2, 0, 1}, 0, "b"},
		{[]int{0, 2, 0, 1}, 1, "d"},
		{[]int{0, 2, 0, 1}, 2, ""},
		{[]int{0, 0, 0, 0}, 2, "c"},
		{[]int{1, 1, 1, 1}, 3, "d"},
		{[]int{1, 1, 1, 1}, -1, ""},
		{nil, 0, ""},
	} {
		w, err := victim(live[:len(x.tasks)], func(k int) int { return x.tasks[k] }, x.i)
		if w != x.want || (err == nil) != (x.want != "") || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("there is no worker %d", x.i)) {
			t.Errorf("worker %d of %v: %q, %v; want %q", x.i, x.tasks, w, err, x.want)
		}
	}
}
