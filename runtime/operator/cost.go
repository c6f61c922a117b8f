package operator

import "time"

// cost makes each record take time. Waiting is owed and slept off in slices of
// at least a millisecond, because the kernel cannot sleep for less: the mean
// is exact and no CPU burns.
type cost struct {
	per  time.Duration
	burn bool
	owed time.Duration
}

const slice = time.Millisecond

func newCost(p Params) cost { return cost{per: time.Duration(p.Cost), burn: p.Burn} }

// charge is called once a record.
func (k *cost) charge(c *Context) {
	if k.per == 0 || c.Uncharged.Load() {
		return
	}
	if k.burn {
		for start := time.Now(); time.Since(start) < k.per; {
		}
		return
	}
	if k.owed += k.per; k.owed < slice {
		return
	}
	start := time.Now()
	if k.owed < 20*slice {
		time.Sleep(k.owed)
	} else {
		t := time.NewTimer(k.owed)
		select {
		case <-t.C:
		case <-c.Stop:
			t.Stop()
		}
	}
	k.owed -= time.Since(start) // what was slept too long is paid in advance
}
