package scheduling

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// RestartType names a restart strategy as restart-strategy.type spells it.
type RestartType string

// The restart strategies.
const (
	NoRestart        RestartType = "none"
	FixedDelay       RestartType = "fixed-delay"
	FailureRate      RestartType = "failure-rate"
	ExponentialDelay RestartType = "exponential-delay"
)

// Unlimited is the number of attempts of a strategy that never gives up.
const Unlimited = math.MaxInt32

// RestartConfig chooses a restart strategy. Only the fields of its type count.
type RestartConfig struct {
	Type RestartType

	// FixedDelay: Attempts restarts in all, Delay before each.
	// FailureRate: at most Attempts failures an Interval, Delay before each.
	// ExponentialDelay: Attempts restarts before it has calmed down.
	Attempts int
	Delay    time.Duration
	Interval time.Duration

	// ExponentialDelay.
	Initial, Max   time.Duration
	Multiplier     float64       // > 1
	ResetThreshold time.Duration // without a failure, after which it begins anew
	Jitter         float64       // share of the delay by which it varies, 0 to 1
}

// Strategy decides about the restarts of a job.
type Strategy struct{ s strategy }

// NewStrategy makes a strategy to which nothing has happened.
func NewStrategy(c RestartConfig, seed uint64) *Strategy { return &Strategy{newStrategy(c, seed)} }

// Failed is told of a failure and says how long to wait before the restart, or
// that there is none and why.
func (s *Strategy) Failed(now time.Duration) (delay time.Duration, refused string) {
	return s.s.failed(now)
}

// strategy decides about restarts.
type strategy interface {
	// failed is told of a failure and says how long to wait before the restart,
	// or that there is none and why.
	failed(now time.Duration) (delay time.Duration, refused string)
}

func newStrategy(c RestartConfig, seed uint64) strategy {
	switch c.Type {
	case FixedDelay:
		return &fixedDelay{c: c}
	case FailureRate:
		return &failureRate{c: c}
	case ExponentialDelay:
		return &exponentialDelay{c: c, rand: rand.New(rand.NewPCG(seed, 0x7265737461727473))}
	}
	return noRestart{}
}

type noRestart struct{}

func (noRestart) failed(time.Duration) (time.Duration, string) {
	return 0, "restart-strategy.type is none"
}

type fixedDelay struct {
	c     RestartConfig
	count int
}

func (f *fixedDelay) failed(time.Duration) (time.Duration, string) {
	if f.count >= f.c.Attempts && f.c.Attempts < Unlimited {
		return 0, fmt.Sprintf("restart-strategy.fixed-delay.attempts allows %d restarts", f.c.Attempts)
	}
	f.count++
	return f.c.Delay, ""
}

type failureRate struct {
	c        RestartConfig
	failures []time.Duration // the newest, at most Attempts
}

func (f *failureRate) failed(now time.Duration) (time.Duration, string) {
	f.failures = append(f.failures, now)
	if n := len(f.failures); n > f.c.Attempts {
		oldest := f.failures[n-1-f.c.Attempts]
		f.failures = f.failures[n-f.c.Attempts:]
		if now-oldest <= f.c.Interval {
			return 0, fmt.Sprintf("restart-strategy.failure-rate allows %d failures in %v", f.c.Attempts, f.c.Interval)
		}
	}
	return f.c.Delay, ""
}

type exponentialDelay struct {
	c       RestartConfig
	rand    *rand.Rand
	count   int
	backoff time.Duration // without jitter
	calm    time.Duration // when the last restart was due
}

func (e *exponentialDelay) failed(now time.Duration) (time.Duration, string) {
	switch {
	case e.count == 0 || now-e.calm >= e.c.ResetThreshold:
		e.count, e.backoff = 0, e.c.Initial
	default:
		e.backoff = min(e.c.Max, time.Duration(float64(e.backoff)*e.c.Multiplier))
	}
	if e.count >= e.c.Attempts && e.c.Attempts < Unlimited {
		return 0, fmt.Sprintf("restart-strategy.exponential-delay.attempts-before-reset-backoff allows %d restarts", e.c.Attempts)
	}
	e.count++
	delay := e.backoff
	if e.c.Jitter > 0 {
		delay += time.Duration((2*e.rand.Float64() - 1) * e.c.Jitter * float64(delay))
		delay = min(max(delay, 0), e.c.Max)
	}
	e.calm = now + delay
	return delay, ""
}
