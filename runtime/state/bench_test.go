package state

import (
	"encoding/binary"
	"io"
	"testing"
)

// keyedSum is the hot path of a keyed sum over n keys and 64 key groups.
func keyedSum(b *testing.B, keys uint64, width int) {
	be := NewBackend(0, 63)
	t, err := be.Table("sum", width)
	if err != nil {
		b.Fatal(err)
	}
	x := uint64(88172645463325252)
	b.ReportAllocs()
	for b.Loop() {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		key := x % keys
		val, _ := t.Upsert(int(key*0x9e3779b97f4a7c15>>58), key, 0)
		binary.LittleEndian.PutUint64(val, binary.LittleEndian.Uint64(val)+x)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mupdates/s")
}

func BenchmarkKeyedSum1000(b *testing.B)    { keyedSum(b, 1000, 8) }
func BenchmarkKeyedSum100000(b *testing.B)  { keyedSum(b, 100000, 8) }
func BenchmarkKeyedSum1KiB(b *testing.B)    { keyedSum(b, 1000, 1024) }
func BenchmarkKeyedSumMillion(b *testing.B) { keyedSum(b, 1000000, 8) }

func BenchmarkWindow(b *testing.B) {
	be := NewBackend(0, 63)
	t, _ := be.Table("window", 8)
	b.ReportAllocs()
	var i uint64
	for b.Loop() {
		key, window := i%1000, i/10000
		group := int(key & 63)
		val, fresh := t.Upsert(group, key, window)
		if fresh {
			be.Timers().Register(group, Timer{Time: int64(window), Key: key, NS: window})
		}
		val[0]++
		if i%10000 == 0 {
			be.Timers().Advance(int64(window)-2, func(group int, tm Timer) error {
				t.Delete(group, tm.Key, tm.NS)
				return nil
			})
		}
		i++
	}
}

func BenchmarkSnapshotWrite(b *testing.B) {
	be := NewBackend(0, 63)
	t, _ := be.Table("sum", 64)
	for k := uint64(0); k < 1000000; k++ {
		t.Upsert(int(k&63), k, 0)
	}
	b.SetBytes(be.Bytes())
	for b.Loop() {
		s := be.Snapshot()
		if _, err := s.Write(io.Discard); err != nil {
			b.Fatal(err)
		}
		s.Release()
	}
}
