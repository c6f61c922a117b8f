package joblog

import (
	"context"
	"testing"
)

// Two masters that both believe to lead: the older one puts the log in order anew
// after the newer one has read it, before that has a file of its own. The newer
// one reads it again, and neither its own events nor the older one's are lost.
//
// Fails if passBy steps over a file of an older master that came in between; the
// third master then takes what the second one made durable for a torn end.
func TestOlderMasterCompactsUnderTheNewerOne(t *testing.T) {
	for _, unseen := range []int{0, 1} { // events of the older one that the newer has not read
		d := newMemory()
		old := must(openHardened(d, Config{Job: "job", Epoch: 1}))(t)
		write := func(es ...Event) {
			for _, e := range es {
				old.Append(Entry{Event: e})
			}
			old.step(false, true)
		}
		write(EpochStarted{Epoch: 1}, finished("a", 0, 0, 1))
		kept := []AttemptID{finished("a", 0, 0, 1).Attempt}
		acted := false
		disarm := creating.Before.Arm(func(int, string) error {
			if !acted {
				acted = true
				for i := range unseen {
					write(finished("a", 1+i, 0, 1))
				}
				return old.compact()
			}
			return nil
		})
		young := open(t, d, 2)
		disarm()
		if got := replayed(t, young); len(got) != 2+unseen || !acted {
			t.Errorf("%d unseen: the newer master reads %d events: %v", unseen, len(got), names(d))
		}
		young.Append(Entry{Event: EpochStarted{Epoch: 2, Kept: kept}})
		young.Append(Entry{Event: finished("a", 2, 0, 2)})
		if err := young.Sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		_ = old.file.Close()
		shut(t, young)
		third := must(openHardened(d, Config{Job: "job", Epoch: 3}))(t)
		if v := viewOf(replayed(t, third)); len(v.Finished) != 2 || third.Torn() != "" {
			t.Errorf("%d unseen: the third master finds %d finished tasks, cut off %q", unseen, len(v.Finished), third.Torn())
		}
		_ = third.file.Close()
	}
}
