package master

import (
	"net"
	"slices"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/scheduling/batch"
)

func producer(partition, attempt int) batch.Producer {
	return batch.Producer{
		Attempt: joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "from", Subtask: partition}, Epoch: 1, Attempt: attempt},
		Worker:  workerID(partition % 2),
	}
}

// A worker that follows the news always knows the producers of what it is about
// to read, whatever changed before; what has not changed is not told again.
// Fails if the run ends at the first entry that is known, or if lists that begin
// alike are taken for the same, whatever their length.
func TestProducersAreToldOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const partitions = 12
		lists, attempts := map[string][]batch.Producer{}, map[string]int{}
		known := map[string][]batch.Producer{}
		for _, d := range []string{"x", "y"} {
			for p := range partitions {
				lists[d] = append(lists[d], producer(p, 0))
			}
			known[d] = make([]batch.Producer, partitions)
		}
		told := producerLists{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			d := rapid.SampledFrom([]string{"x", "y"}).Draw(t, "data set")
			if rapid.Bool().Draw(t, "changes") {
				p := rapid.IntRange(0, partitions-1).Draw(t, "partition")
				attempts[d]++
				lists[d] = slices.Clone(lists[d]) // as the scheduler does
				lists[d][p] = producer(p, attempts[d])
				continue
			}
			first := rapid.IntRange(0, partitions-1).Draw(t, "first")
			last := rapid.IntRange(first-1, partitions-1).Draw(t, "last")
			want := lists[d][first : last+1]
			stale := 0
			for i, p := range want {
				if known[d][first+i] != p {
					stale++
				}
			}
			from, run := told.news(d, first, want)
			if stale == 0 && len(run) > 0 {
				t.Fatalf("told %d producers that are known", len(run))
			}
			if stale > 0 && (run[0] == known[d][from] || run[len(run)-1] == known[d][from+len(run)-1]) {
				t.Fatal("the run has known producers at its ends")
			}
			copy(known[d][from:], run)
			if !slices.Equal(known[d][first:last+1], want) {
				t.Fatalf("%s %d..%d: known %v, want %v", d, first, last, known[d][first:last+1], want)
			}
		}
	})
}

// countingConn counts what is written.
type countingConn struct {
	net.Conn
	n atomic.Int64
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	return c.Conn.Write(b)
}

// BenchmarkDeploy is what a task of 1,000 that each read from 1,000 others takes
// on the connections of two workers.
func BenchmarkDeploy(b *testing.B) {
	const p = 1000
	producers := make([]batch.Producer, p)
	for i := range producers {
		producers[i] = producer(i, 0)
	}
	for b.Loop() {
		m := &Batch{
			attempts: map[joblog.AttemptID]batch.Worker{}, told: map[batch.Worker]producerLists{},
			workers: &registry{joined: map[scheduling.Worker]*worker{}},
		}
		m.shared.finished = map[string]map[int]int64{}
		var bytes []*countingConn
		var arrived atomic.Int64
		over := make(chan struct{})
		for i := range 2 {
			near, far := net.Pipe()
			counted := &countingConn{Conn: near}
			bytes = append(bytes, counted)
			w := &worker{id: workerID(i), conn: control.NewConn(counted, func() {}, func(any) {}, func(error) {})}
			m.workers.joined[w.id] = w
			peer := control.NewConn(far, func() {}, func(x any) {
				if _, ok := x.(control.DeployAttempt); ok && arrived.Add(1) == p {
					close(over)
				}
			}, func(error) {})
			defer peer.Close(false)
			defer w.conn.Close(false)
		}
		for i := range p {
			m.deploy(batch.Deploy{
				Attempt: joblog.AttemptID{TaskID: joblog.TaskID{Vertex: "to", Subtask: i}, Epoch: 1}, Worker: workerID(i % 2), Parallelism: p,
				Inputs:  []batch.Input{{DataSet: "from->to#0", Range: joblog.InputRange{LastPartition: p - 1, FirstSubpartition: i, LastSubpartition: i}, Producers: producers}},
				Outputs: []batch.Output{{DataSet: "to->out#0", Subpartitions: 4}},
			})
		}
		<-over
		var total int64
		for _, c := range bytes {
			total += c.n.Load()
		}
		b.ReportMetric(float64(total)/p, "B/task")
		b.ReportMetric(250, "B/task-target")
	}
}
