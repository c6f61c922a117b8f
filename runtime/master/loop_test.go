package master

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Events of one goroutine run in the order in which it posted them, none is lost,
// and no two run at a time. Fails if run takes one event and drops the rest.
func TestLoopRunsEventsInOrder(t *testing.T) {
	l := newLoop()
	const posters, each = 8, 500
	var seen [posters][]int // without a lock: the race detector looks
	var wg sync.WaitGroup
	for p := range posters {
		wg.Go(func() {
			for i := range each {
				l.post(func() { seen[p] = append(seen[p], i) })
			}
		})
	}
	wg.Wait()
	if err := l.ask(t.Context(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for p := range seen {
		if len(seen[p]) != each || !slices.IsSorted(seen[p]) {
			t.Errorf("poster %d: %d events, in order: %t", p, len(seen[p]), slices.IsSorted(seen[p]))
		}
	}
	l.close()
}

// A step that follows from another one runs when that has ended, behind those
// that were due; an event that is posted meanwhile runs when all have ended.
// Fails if enqueue calls fn where it stands.
func TestLoopStepsDoNotNest(t *testing.T) {
	l := newLoop()
	defer l.close()
	var trace []string
	var step func(name string, follow ...string)
	step = func(name string, follow ...string) {
		l.enqueue(func() {
			trace = append(trace, "<"+name)
			for _, f := range follow {
				step(f)
			}
			if len(follow) > 0 {
				l.post(func() { step("posted by " + name) })
			}
			trace = append(trace, name+">")
		})
	}
	l.post(func() {
		step("a", "b", "c")
		step("d", "e")
	})
	l.ask(t.Context(), func() error { return nil }) // runs what a and d posted
	var got []string
	if err := l.ask(t.Context(), func() error { got = trace; return nil }); err != nil {
		t.Fatal(err)
	}
	want := "<a a> <b b> <c c> <d d> <e e> <posted by a posted by a> <posted by d posted by d>"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
}

// close waits for the event that runs and drops those behind it; what comes later
// does not run, and who asks is told.
// Fails if close does not wait for done, if run goes on with the rest of a closed
// mailbox, or if ask waits only for its answer and ctx.
func TestLoopClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop()
		var ran []string
		hold, started := make(chan struct{}), make(chan struct{})
		l.post(func() { <-hold })
		synctest.Wait()
		l.post(func() { // with those behind it in the mailbox
			close(started)
			time.Sleep(time.Second)
			ran = append(ran, "first")
		})
		l.post(func() { ran = append(ran, "second") })
		close(hold)
		<-started
		asked := make(chan error, 1)
		go func() { asked <- l.ask(context.Background(), func() error { return nil }) }()
		synctest.Wait()
		l.close()
		if fmt.Sprint(ran) != "[first]" {
			t.Errorf("ran %v", ran)
		}
		if err := <-asked; !errors.Is(err, errMasterEnded) {
			t.Errorf("who had asked got %v", err)
		}
		l.post(func() { t.Error("an event ran after close") })
		if err := l.ask(context.Background(), func() error { return nil }); !errors.Is(err, errMasterEnded) {
			t.Errorf("who asks later gets %v", err)
		}
		l.close() // again
	})
}

// ask gives back what the request returns, and the cause of a context that ends.
func TestLoopAsk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop()
		no, late := errors.New("no"), errors.New("late")
		if err := l.ask(t.Context(), func() error { return no }); err != no {
			t.Errorf("got %v", err)
		}
		l.post(func() { time.Sleep(time.Minute) })
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, late)
		defer cancel()
		if err := l.ask(ctx, func() error { return nil }); err != late {
			t.Errorf("got %v", err)
		}
		l.close()
	})
}

// A timer does nothing before it is set, posts once each time it is, and nothing
// after close.
func TestLoopTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLoop()
		fired := 0
		x := l.timer(func() { fired++ })
		for i, want := range []int{0, 1, 2} {
			time.Sleep(2 * time.Hour)
			if err := l.ask(t.Context(), func() error {
				if fired != want {
					t.Errorf("round %d: fired %d times", i, fired)
				}
				x.Reset(time.Minute)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		l.close()
		time.Sleep(2 * time.Hour)
		if fired != 2 {
			t.Errorf("fired %d times", fired)
		}
	})
}
