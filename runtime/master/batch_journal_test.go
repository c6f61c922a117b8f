package master

import (
	"testing"
	"testing/synctest"
)

// A master that ends while its log is begun anew ends the new log, too.
// Fails if shut does not look for a log that nobody has taken: its writer goes on.
func TestBatchEndWhileTheLogIsCleared(t *testing.T) {
	deleting := point(t, "joblog/delete")
	synctest.Test(t, func(t *testing.T) {
		j := newBatchJob(t, nil)
		m, _ := j.master()
		hold, held := make(chan struct{}), 0
		disarm := deleting.Arm(func(int, string) error { held++; <-hold; return nil })
		m.loop.post(m.log.clear)
		synctest.Wait()
		if held == 0 {
			t.Error("the log is not being cleared")
		}
		closed := make(chan struct{})
		go func() {
			m.Close()
			close(closed)
		}()
		synctest.Wait()
		disarm()
		close(hold)
		<-closed
		if m.log.opened != nil || m.log.store != nil {
			t.Error("a log is open")
		}
	}) // a writer that is left keeps the bubble from ending
}
