package batch

import (
	"fmt"
	"testing"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
)

// wide is a job of two vertices with n tasks each.
func wide(n int) Config {
	return configure(Config{
		Vertices: []Vertex{{ID: "a", Parallelism: n, Source: true, Coordinators: able("a")}, {ID: "b", Parallelism: n}},
		Edges:    []Edge{{DataSet: "d", From: "a", To: "b", Pointwise: true}},
	}, Hardened)
}

// BenchmarkManyTasks runs 2 x 10,000 short tasks on 64 slots: what a task costs
// the scheduler.
func BenchmarkManyTasks(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		s, err := New(wide(n))
		if err != nil {
			b.Fatal(err)
		}
		s.Step(0, WorkerJoined{ID: "w", Slots: 64})
		queue := s.Step(0, Start{})
		done, logged := 0, uint64(0)
		for len(queue) > 0 {
			e := queue[0]
			queue = queue[1:]
			switch e := e.(type) {
			case Log:
				logged++
			case Deploy:
				done++
				r := Result{}
				for _, o := range e.Outputs {
					r.Results = append(r.Results, joblog.Result{DataSet: o.DataSet, Bytes: make([]int64, o.Subpartitions)})
				}
				queue = append(queue, s.Step(0, TaskChanged{Attempt: e.Attempt, Worker: "w", State: scheduling.TaskFinished, Result: r})...)
				queue = append(queue, s.Step(0, LogDurable{Number: logged})...)
			}
		}
		if done != 2*n {
			b.Fatalf("%d tasks ran", done)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*n), "ns/task")
	b.ReportMetric(50_000, "ns/task-target")
}

// BenchmarkRecover: a log of 100,000 finished tasks, the partitions of which one
// worker still has.
func BenchmarkRecover(b *testing.B) {
	const n = 100_000
	events := []joblog.Event{joblog.EpochStarted{Epoch: 1}, joblog.WorkerSet{Workers: []string{"w"}},
		joblog.JobVertexInitialized{Vertex: "a", Parallelism: n}}
	inv := Inventory{Worker: "w", Epoch: 2}
	for i := range n {
		a := AttemptID{TaskID: TaskID{Vertex: "a", Subtask: i}, Epoch: 1}
		events = append(events, joblog.VertexFinished{Attempt: a, Worker: "w", Results: []joblog.Result{{DataSet: "d", Bytes: []int64{1}}}, Splits: []string{fmt.Sprint("split ", i)}})
		inv.Partitions = append(inv.Partitions, Held{PartitionID{"d", a}, []int64{1}})
	}
	var spent time.Duration
	for b.Loop() {
		cfg := wide(n)
		cfg.Epoch = 2
		s, err := New(cfg)
		if err != nil {
			b.Fatal(err)
		}
		s.Step(0, WorkerJoined{ID: "w", Slots: 64})
		begin := time.Now()
		s.Step(0, Start{HasLog: true})
		s.Step(0, Replayed{Events: events})
		out := s.Step(0, inv)
		spent += time.Since(begin)
		deployed := 0
		for _, e := range out {
			if d, ok := e.(Deploy); ok && d.Attempt.Vertex == "b" {
				deployed++
			}
		}
		if deployed != 64 {
			b.Fatalf("%d tasks deployed", deployed)
		}
	}
	b.ReportMetric(spent.Seconds()/float64(b.N), "s/recovery")
	b.ReportMetric(2, "s/recovery-target")
}
