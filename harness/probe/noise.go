package probe

import (
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"time"
)

// Names of the probes. Each has the unit in its name; the spread is the slowest
// round over the fastest.
const (
	ProbeALU       = "alu_ms"            // a fixed loop of multiplications, fastest round
	ProbeALUSpread = "alu_spread_ratio"  // 1 on a quiet machine
	ProbeCopy      = "memcpy_gib_per_s"  // copying memory, fastest round
	ProbeSync      = "fsync_ms"          // making 4 KiB durable, median
	ProbeSyncWorst = "fsync_worst_ms"    // slowest
	ProbeLoop      = "loopback_us"       // one byte there and back over TCP, median
	ProbeLoopWorst = "loopback_worst_us" // slowest
)

// Sizes of the probes.
const (
	aluRounds   = 9
	aluSteps    = 4 << 20
	copyRounds  = 5
	copyBytes   = 16 << 20
	syncRounds  = 7
	loopRounds  = 200
	loopTimeout = 2 * time.Second
)

// Noise measures the machine; dir is where results will be written. A probe
// that cannot be done is absent.
func Noise(dir string) map[string]float64 {
	out := map[string]float64{}
	product := uint64(0)
	alu := repeat(aluRounds, func() bool { product += multiply(aluSteps); return true })
	runtime.KeepAlive(product)
	if len(alu) > 0 {
		out[ProbeALU] = ms(alu[0])
		if alu[0] > 0 {
			out[ProbeALUSpread] = float64(alu[len(alu)-1]) / float64(alu[0])
		}
	}
	from, to := make([]byte, copyBytes), make([]byte, copyBytes)
	copy(to, from) // the pages come into being
	if c := repeat(copyRounds, func() bool { copy(to, from); return true }); len(c) > 0 && c[0] > 0 {
		out[ProbeCopy] = copyBytes / c[0].Seconds() / (1 << 30)
	}
	if s := syncs(dir); len(s) > 0 {
		out[ProbeSync], out[ProbeSyncWorst] = ms(s[len(s)/2]), ms(s[len(s)-1])
	}
	if l := loopback(); len(l) > 0 {
		out[ProbeLoop], out[ProbeLoopWorst] = us(l[len(l)/2]), us(l[len(l)-1])
	}
	return out
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }
func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// repeat times rounds of some work and sorts the times. Work that fails ends
// it.
func repeat(rounds int, work func() bool) []time.Duration {
	var out []time.Duration
	for range rounds {
		began := time.Now()
		if !work() {
			break
		}
		out = append(out, time.Since(began))
	}
	slices.Sort(out)
	return out
}

// multiply is a chain of operations of which each needs the one before.
func multiply(steps int) uint64 {
	x := uint64(0x9e3779b97f4a7c15)
	for range steps {
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 29
	}
	return x
}

// syncs times making a small write durable.
func syncs(dir string) []time.Duration {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return nil
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	return repeat(syncRounds, func() bool {
		_, err := f.Write(block)
		return err == nil && f.Sync() == nil
	})
}

// loopback times a byte's way there and back.
func loopback() []time.Duration {
	e := newEcho()
	if e == nil {
		return nil
	}
	defer e.close()
	return repeat(loopRounds, e.turn)
}

// echo is a connection to this host itself whose other end sends everything
// back.
type echo struct {
	listener net.Listener
	conn     net.Conn
	ended    chan struct{} // the other end is gone
	buffer   [1]byte
}

// newEcho returns nil where there is no loopback.
func newEcho() *echo {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil
	}
	e := &echo{listener: l, ended: make(chan struct{})}
	go func() { // ends with the connection, or with the listener
		defer close(e.ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.Copy(c, c)
	}()
	e.conn, err = net.DialTimeout("tcp", l.Addr().String(), loopTimeout)
	if err != nil {
		l.Close()
		<-e.ended
		return nil
	}
	return e
}

func (e *echo) turn() bool {
	e.conn.SetDeadline(time.Now().Add(loopTimeout))
	if _, err := e.conn.Write(e.buffer[:]); err != nil {
		return false
	}
	_, err := io.ReadFull(e.conn, e.buffer[:])
	return err == nil
}

func (e *echo) close() {
	e.conn.Close()
	e.listener.Close()
	<-e.ended
}
