package probe

import (
	"runtime"
	"time"

	"benchrun/harness/result"
)

// Sizes of the quick look: a few rounds of an eighth of Noise's loop, then
// sleeps, each followed by a look at the queue of the scheduler.
const (
	quickRounds = 5
	quickParts  = 8 // the loop of Noise is so many rounds long
	quickSleeps = 8
	quickSleep  = time.Millisecond
)

// Quick looks at the host for about 20 ms, in the moment before or after a
// trial. See result.Busy for what it tells.
func Quick() *result.HostProbe {
	var p result.HostProbe
	product := uint64(0)
	rounds := repeat(quickRounds, func() bool { product += multiply(aluSteps / quickParts); return true })
	runtime.KeepAlive(product)
	p.ALUMs = ms(rounds[len(rounds)/2]) * quickParts
	var late time.Duration
	others, looks := 0.0, 0
	for range quickSleeps {
		began := time.Now()
		time.Sleep(quickSleep)
		late = max(late, time.Since(began)-quickSleep)
		if load, running, ok := queue("/"); ok {
			p.Load = &load
			others += max(float64(running-1), 0) // without this thread, which reads
			looks++
		}
	}
	p.DelayUs = us(late)
	if looks > 0 {
		others /= float64(looks)
		p.CPUBusyElsewhere = &others
	}
	return &p
}
