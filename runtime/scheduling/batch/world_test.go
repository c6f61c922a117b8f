package batch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"benchrun/runtime/joblog"
	"benchrun/runtime/scheduling"
	"benchrun/runtime/timeline"
)

// world is everything around a scheduler: workers with what they hold and run, a
// log of which the end may be lost, split enumerators. It carries effects out
// and answers what the scheduler asks for.
type world struct {
	cfg     Config
	s       *Scheduler
	now     time.Duration
	timer   time.Duration
	workers map[Worker]*site
	folders map[Worker]*site // of workers that died
	frozen  map[Worker]*site // workers that are taken for dead
	order   []Worker

	log        []joblog.Event // of all masters
	base       int            // where this master's events begin
	hasLog     bool           // a log file is there
	durable    int
	slowLog    bool // LogDurable comes when it is asked for
	unreadable error
	silent     map[Worker]bool
	delayed    map[Worker]Inventory // what a silent worker had when it was asked

	enumerators map[string]*enumerator // by operator
	splits      map[string]int         // how many a source has
	committed   map[AttemptID]int
	// Commits fail, all but some of a round; or nobody hears of them.
	commitErr        error
	permanent, stuck bool
	some             int
	read             map[AttemptID][]AttemptID // what an attempt has read
	end              *Terminal
	// What workers remember of attempts that have finished, too.
	parallelismOf map[AttemptID]int
	splitsOf      map[AttemptID][]string
	early         bool // a source ends before all splits are read
	unread        bool // the next end of a source task lacks a split
	errs          []error
	outcome       error // of the job, when its end was logged
	pending       []Event
}

// site is what is on a worker.
type site struct {
	slots      int
	partitions map[PartitionID][]int64
	running    map[AttemptID]*Deploy
	done       map[AttemptID]Result // finished, and the log does not have it yet
	formerly   []Worker             // that had its partitions before
}

// enumerator hands out splits one by one.
type enumerator struct {
	vertex string
	free   []string
	has    map[int][]string
}

func (e *enumerator) encode() []byte {
	var b strings.Builder
	b.WriteString(strings.Join(e.free, ","))
	for _, k := range slices.Sorted(maps.Keys(e.has)) {
		fmt.Fprintf(&b, "|%d:%s", k, strings.Join(e.has[k], ","))
	}
	return []byte(b.String())
}

func split(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}

func newWorld(cfg Config, splits map[string]int) *world {
	w := &world{cfg: cfg, splits: splits, workers: map[Worker]*site{}, folders: map[Worker]*site{}, frozen: map[Worker]*site{}, committed: map[AttemptID]int{},
		read: map[AttemptID][]AttemptID{}, silent: map[Worker]bool{}, delayed: map[Worker]Inventory{},
		parallelismOf: map[AttemptID]int{}, splitsOf: map[AttemptID][]string{}}
	w.newMaster()
	return w
}

func (w *world) newMaster() {
	w.timer, w.end, w.pending = never, nil, nil
	w.enumerators = map[string]*enumerator{}
	for _, v := range w.cfg.Vertices {
		for _, c := range v.Coordinators {
			w.enumerators[c.Operator] = w.fresh(v.ID)
		}
	}
	s, err := New(w.cfg)
	if err != nil {
		panic(err) // of a test's own job
	}
	w.s = s
}

func (w *world) fresh(vertex string) *enumerator {
	e := &enumerator{vertex: vertex, has: map[int][]string{}}
	for i := range w.splits[vertex] {
		e.free = append(e.free, fmt.Sprintf("%s.%d", vertex, i))
	}
	return e
}

func (w *world) join(id Worker, slots int) []Effect {
	if w.workers[id] == nil {
		w.workers[id] = &site{slots: slots, partitions: map[PartitionID][]int64{}, running: map[AttemptID]*Deploy{}, done: map[AttemptID]Result{}}
		w.order = append(w.order, id)
	}
	return w.step(WorkerJoined{ID: id, Slots: slots})
}

// die takes a worker away without a word. Its folder stays.
func (w *world) die(id Worker) {
	s := w.workers[id]
	w.folders[id] = &site{slots: s.slots, partitions: s.partitions, running: map[AttemptID]*Deploy{}, done: map[AttemptID]Result{}, formerly: append(s.formerly, id)}
	delete(w.workers, id)
	w.order = slices.DeleteFunc(w.order, func(x Worker) bool { return x == id })
}

// replace brings up a worker on the folder of one that died.
func (w *world) replace(id, of Worker) []Effect {
	w.workers[id] = w.folders[of]
	w.order = append(w.order, id)
	return w.step(WorkerJoined{ID: id, Slots: w.workers[id].slots})
}

// freeze has a worker taken for dead that goes on later.
func (w *world) freeze(id Worker) []Effect {
	w.frozen[id] = w.workers[id]
	return w.lose(id)
}

// thaw lets it join the master of the day, which asks it for what it has.
func (w *world) thaw(id Worker) []Effect {
	w.workers[id] = w.frozen[id]
	delete(w.frozen, id)
	w.order = append(w.order, id)
	if w.s.phase == phaseCreated {
		return nil // takeOver introduces it
	}
	return append(w.step(WorkerJoined{ID: id, Slots: w.workers[id].slots}), w.step(w.inventory(id))...)
}

func (w *world) lose(id Worker) []Effect {
	delete(w.workers, id)
	w.order = slices.DeleteFunc(w.order, func(x Worker) bool { return x == id })
	return w.step(WorkerLost{ID: id})
}

// crash replaces the master: of its log a part survives. Between the two some
// attempts may finish.
func (w *world) crash(lost int) {
	keep := max(w.durable, len(w.log)-lost)
	w.log = w.log[:keep]
	if w.cfg.Mode == Faithful {
		// Workers give up what they run when they lose their master.
		for _, site := range w.workers {
			clear(site.running)
		}
	}
	w.cfg.Epoch++
	clear(w.delayed)
	w.newMaster()
}

// takeOver lets the new master begin with the workers that are there.
func (w *world) takeOver() []Effect {
	out := w.step(Start{HasLog: w.hasLog, Workers: len(w.order), Patience: 5 * time.Second})
	for _, id := range slices.Clone(w.order) {
		out = append(out, w.join(id, w.workers[id].slots)...)
	}
	return out
}

// step brings an event, carries the effects out and brings the answers, until
// there are none.
func (w *world) step(e Event) []Effect {
	w.pending = append(w.pending, e)
	var all []Effect
	for len(w.pending) > 0 {
		e := w.pending[0]
		w.pending = w.pending[1:]
		out := w.s.Step(w.now, e)
		all = append(all, out...)
		for _, x := range out {
			w.carryOut(x)
		}
	}
	return all
}

func (w *world) fail(format string, a ...any) { w.errs = append(w.errs, fmt.Errorf(format, a...)) }

func (w *world) answer(e Event) { w.pending = append(w.pending, e) }

func (w *world) carryOut(x Effect) {
	switch x := x.(type) {
	case Log:
		w.hasLog = true
		e := x.Event
		if f, ok := e.(joblog.VertexFinished); ok && x.Wait {
			f.Snapshotted = true
			for _, op := range x.Snapshots {
				f.Snapshots = append(f.Snapshots, joblog.Snapshot{Operator: op, Data: w.enumerators[op].encode()})
			}
			e = f
		}
		if k, ok := e.(joblog.EpochStarted); ok && k.Epoch != w.cfg.Epoch {
			w.fail("epoch %d in the log of %d", k.Epoch, w.cfg.Epoch)
		}
		if e.Kind() == joblog.KindJobFinished {
			w.outcome = w.check()
		}
		w.log = append(w.log, e)
		if !w.slowLog {
			w.sync()
		}
	case ClearLog:
		w.log, w.base, w.durable, w.hasLog = nil, 0, 0, false
	case CloseLog:
		if x.Clear {
			w.hasLog = false
		}
	case ReplayLog:
		w.answer(Replayed{Events: slices.Clone(w.log), Err: w.unreadable})
		w.base, w.durable = len(w.log), len(w.log)
	case AskInventory:
		if w.silent[x.Worker] {
			w.delayed[x.Worker] = w.inventory(x.Worker)
		} else {
			w.answer(w.inventory(x.Worker))
		}
	case SettleInventory:
		w.settle(x)
	case SnapshotCoordinator:
		w.answer(SnapshotTaken{Operator: x.Operator, Data: w.enumerators[x.Operator].encode()})
	case RestoreCoordinator:
		w.restoreEnumerator(x)
	case ResetSubtasks:
		e := w.enumerators[x.Operator]
		for _, i := range x.Subtasks {
			e.free = append(e.free, e.has[i]...)
			delete(e.has, i)
		}
	case Deploy:
		w.deploy(x)
	case Cancel:
		if site := w.workers[x.Worker]; site != nil {
			delete(site.running, x.Attempt)
		}
		w.answer(TaskChanged{Attempt: x.Attempt, Worker: x.Worker, State: scheduling.TaskCanceled})
	case Release:
		if site := w.workers[x.Worker]; site != nil {
			for _, id := range x.Partitions {
				delete(site.partitions, id)
			}
		}
	case CommitOutput:
		if w.commitErr != nil {
			x.Attempts = x.Attempts[:min(w.some, len(x.Attempts))]
		}
		for _, a := range x.Attempts {
			w.committed[a]++
		}
		if !w.stuck {
			w.answer(OutputCommitted{Attempts: x.Attempts, Err: w.commitErr, Permanent: w.permanent})
		}
	case WithdrawOutput:
		maps.DeleteFunc(w.committed, func(a AttemptID, _ int) bool {
			return a.Epoch < w.cfg.Epoch && !slices.Contains(x.Keep, a)
		})
		w.answer(OutputWithdrawn{})
	case SetTimer:
		w.timer = x.At
	case StopTimer:
		w.timer = never
	case Terminal:
		w.end = &x
		if w.cfg.Mode == Faithful { // which logs no end
			w.outcome = w.check()
		}
	}
}

// sync makes the log durable.
func (w *world) sync() {
	for _, e := range w.log[min(w.durable, len(w.log)):] {
		if f, ok := e.(joblog.VertexFinished); ok {
			for _, site := range w.workers {
				delete(site.done, f.Attempt)
			}
		}
	}
	w.durable = len(w.log)
	w.answer(LogDurable{Number: uint64(w.durable - w.base)})
}

func (w *world) inventory(id Worker) Inventory {
	inv := Inventory{Worker: id, Epoch: w.cfg.Epoch}
	site := w.workers[id]
	if site == nil {
		return inv
	}
	inv.Formerly = site.formerly
	for p, b := range site.partitions {
		inv.Partitions = append(inv.Partitions, Held{p, b})
	}
	slices.SortFunc(inv.Partitions, func(a, b Held) int { return byPartition(a.Partition, b.Partition) })
	for a, d := range site.running {
		inv.Running = append(inv.Running, Execution{Attempt: a, Parallelism: d.Parallelism, State: scheduling.TaskRunning, Result: Result{Splits: slices.Clone(w.splitsOf[a])}, Inputs: w.read[a]})
	}
	for a, r := range site.done {
		inv.Running = append(inv.Running, Execution{Attempt: a, Parallelism: w.parallelismOf[a], State: scheduling.TaskFinished, Result: r, Inputs: w.read[a]})
	}
	slices.SortFunc(inv.Running, func(a, b Execution) int { return strings.Compare(a.Attempt.String(), b.Attempt.String()) })
	return inv
}

// lateAnswer is what a silent worker says at last: hardened, what it has now;
// faithful, what it had when it was asked, on a slow way. A faithful master that
// gets the former releases what has been made since.
func (w *world) lateAnswer(id Worker) Inventory {
	inv, asked := w.delayed[id]
	delete(w.delayed, id)
	switch {
	case w.cfg.Mode != Faithful:
		return w.inventory(id)
	case !asked:
		return Inventory{Worker: id} // of no epoch
	case w.workers[id] != nil:
		inv.Partitions = slices.DeleteFunc(inv.Partitions, func(h Held) bool { return w.workers[id].partitions[h.Partition] == nil })
	}
	return inv
}

func (w *world) settle(x SettleInventory) {
	site := w.workers[x.Worker]
	for _, id := range x.Release {
		delete(site.partitions, id)
	}
	for _, a := range x.Cancel {
		delete(site.running, a)
		delete(site.done, a)
	}
	for _, a := range x.Adopt {
		if r, done := site.done[a]; done {
			w.answer(TaskChanged{Attempt: a, Worker: x.Worker, State: scheduling.TaskFinished, Result: r})
		}
	}
	for id := range site.partitions {
		if !slices.Contains(x.Keep, id) {
			w.fail("worker %s holds %s, which is in no list", x.Worker, id)
		}
	}
}

func (w *world) restoreEnumerator(x RestoreCoordinator) {
	e := w.fresh(x.Vertex)
	if x.State != nil {
		parts := strings.Split(string(x.State), "|")
		e.free = split(parts[0])
		for _, p := range parts[1:] {
			var k int
			n, list, _ := strings.Cut(p, ":")
			fmt.Sscan(n, &k)
			e.has[k] = split(list)
		}
	}
	if x.Held != nil {
		// What subtasks hold is theirs; all else is free again.
		held := map[string]bool{}
		for _, l := range x.Held {
			for _, s := range l {
				held[s] = true
			}
		}
		e = w.fresh(x.Vertex)
		e.free = slices.DeleteFunc(e.free, func(s string) bool { return held[s] })
		for k, l := range x.Held {
			e.has[k] = l
		}
	}
	w.enumerators[x.Operator] = e
}

// deploy checks that what the attempt reads is there.
func (w *world) deploy(x Deploy) {
	site := w.workers[x.Worker]
	if site == nil {
		w.fail("%s is deployed on %s, which is not there", x.Attempt, x.Worker)
		return
	}
	busy := 0
	for a := range site.running {
		if w.s.attempts[a] != nil { // one that is not known is about to be cancelled
			busy++
		}
	}
	if busy >= site.slots {
		w.fail("worker %s has %d slots and gets another task", x.Worker, site.slots)
	}
	site.running[x.Attempt] = &x
	w.parallelismOf[x.Attempt] = x.Parallelism
	w.splitsOf[x.Attempt] = nil
	for _, e := range w.enumerators {
		if e.vertex == x.Attempt.Vertex {
			w.splitsOf[x.Attempt] = slices.Clone(e.has[x.Attempt.Subtask])
		}
	}
	w.read[x.Attempt] = nil
	for _, in := range x.Inputs {
		for _, p := range in.Producers {
			w.read[x.Attempt] = append(w.read[x.Attempt], p.Attempt)
			if in.Pipelined {
				continue
			}
			id := PartitionID{in.DataSet, p.Attempt}
			from := w.workers[p.Worker]
			if from == nil || from.partitions[id] == nil {
				w.fail("%s is deployed and its input %s is not on %s", x.Attempt, id, p.Worker)
			}
		}
	}
	w.answer(TaskChanged{Attempt: x.Attempt, Worker: x.Worker, State: scheduling.TaskRunning})
}

// where finds the worker that runs the current attempt of a task.
func (w *world) where(t TaskID) (Worker, AttemptID, error) {
	for _, id := range w.order {
		for _, a := range slices.SortedFunc(maps.Keys(w.workers[id].running), func(a, b AttemptID) int { return strings.Compare(a.String(), b.String()) }) {
			if a.TaskID == t {
				return id, a, nil
			}
		}
	}
	return "", AttemptID{}, fmt.Errorf("no attempt of %s runs", t)
}

// running lists all attempts that run, in order.
func (w *world) running() (out []Execution, where map[AttemptID]Worker) {
	where = map[AttemptID]Worker{}
	for _, id := range w.order {
		for a := range w.workers[id].running {
			out = append(out, Execution{Attempt: a})
			where[a] = id
		}
	}
	slices.SortFunc(out, func(a, b Execution) int { return strings.Compare(a.Attempt.String(), b.Attempt.String()) })
	return out, where
}

// verify checks a job that has FINISHED: each split was read once, each task
// read what counts, output was committed once, and nothing is left.
func (w *world) verify() error {
	errs := append(slices.Clone(w.errs), w.outcome)
	for _, id := range w.order {
		if w.silent[id] || w.s.vertices[0].parallelism == 0 {
			continue // it could not be told, or all workers drop a job that was over before
		}
		if n := len(w.workers[id].partitions); n > 0 {
			errs = append(errs, fmt.Errorf("worker %s is left with %d partitions: %v", id, n, slices.Collect(maps.Keys(w.workers[id].partitions))))
		}
		if n := len(w.workers[id].running); n > 0 {
			errs = append(errs, fmt.Errorf("worker %s is left with %d tasks", id, n))
		}
	}
	return errors.Join(errs...)
}

// check is the part about the output, when the end of the job is logged.
func (w *world) check() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	want := map[AttemptID]bool{}
	for _, v := range w.s.vertices {
		seen := map[string]AttemptID{}
		for _, t := range v.tasks {
			a := t.winner.Attempt
			if v.Source {
				for _, s := range w.splitsOf[a] {
					if other, twice := seen[s]; twice {
						bad("split %s was read by %s and %s", s, other, a)
					}
					seen[s] = a
				}
			}
			if v.Commits {
				want[a] = true
			}
			for i, in := range t.inputsOf() {
				for j, p := range in.Producers {
					if got := w.s.byData[t.v.in[i].DataSet].from.tasks[in.Range.FirstPartition+j].winner.Attempt; got != p.Attempt {
						bad("%s reads %s, the task's winner is %s", a, p.Attempt, got)
					}
					if !slices.Contains(w.read[a], p.Attempt) {
						bad("%s has not read %s", a, p.Attempt)
					}
				}
			}
		}
		if v.Source && len(seen) != w.splits[v.ID] {
			bad("%d of %d splits of %s were read", len(seen), w.splits[v.ID], v.ID)
		}
	}
	for a := range w.committed {
		if !want[a] {
			bad("%s was committed and does not count", a)
		}
	}
	for a := range want {
		if w.committed[a] == 0 {
			bad("%s was not committed", a)
		}
	}
	return errors.Join(errs...)
}

// print writes effects one a line; states of tasks are left out.
func printEffects(es []Effect) string {
	var b strings.Builder
	for _, e := range es {
		switch e := e.(type) {
		case Note:
			switch e.Event.Kind {
			case timeline.PartitionKept, timeline.PartitionLost:
				fmt.Fprintf(&b, "%s %s %s/%d#%d %s\n", e.Event.Kind, e.Event.Detail, e.Event.Vertex, e.Event.Subtask, e.Event.Attempt, e.Event.Reason)
			case timeline.JobState:
				fmt.Fprintf(&b, "%s: %s", e.Event.State, e.Event.Reason)
				if e.Event.Detail != "" {
					fmt.Fprintf(&b, " (%s)", e.Event.Detail)
				}
				b.WriteString("\n")
			case timeline.EventReplayed:
				fmt.Fprintf(&b, "replayed %d events, %s\n", e.Event.Records, e.Event.Detail)
			case timeline.TaskState:
				if e.Event.Detail == "adopted" {
					fmt.Fprintf(&b, "%s %s/%d#%d, adopted\n", e.Event.State, e.Event.Vertex, e.Event.Subtask, e.Event.Attempt)
				}
			}
		case AskInventory:
			fmt.Fprintf(&b, "ask %s\n", e.Worker)
		case SettleInventory:
			fmt.Fprintf(&b, "settle %s: keep %v, release %v, adopt %v, cancel %v\n", e.Worker, e.Keep, e.Release, e.Adopt, e.Cancel)
		case Adopted:
			fmt.Fprintf(&b, "adopted %s/%d#%d\n", e.Attempt.Vertex, e.Attempt.Subtask, e.Attempt.Attempt)
		case ReplayLog:
			b.WriteString("replay log\n")
		case ClearLog:
			b.WriteString("clear log\n")
		case RecordResult:
			fmt.Fprintf(&b, "result %s\n", e.Result.Status)
		case CloseLog:
			fmt.Fprintf(&b, "close log, clear %v\n", e.Clear)
		case Log:
			fmt.Fprintf(&b, "log %s", e.Event.Kind())
			switch x := e.Event.(type) {
			case joblog.VertexFinished:
				fmt.Fprintf(&b, " %s", x.Attempt)
			case joblog.VerticesReset:
				fmt.Fprintf(&b, " %v", x.Tasks)
			case joblog.JobVertexInitialized:
				fmt.Fprintf(&b, " %s:%d", x.Vertex, x.Parallelism)
			case joblog.EpochStarted:
				fmt.Fprintf(&b, " %d, kept %v", x.Epoch, x.Kept)
			case joblog.WorkerSet:
				fmt.Fprintf(&b, " %v", x.Workers)
			}
			if e.Cut {
				b.WriteString(" (cut)")
			}
			if e.Wait {
				fmt.Fprintf(&b, " with snapshots %v", e.Snapshots)
			}
			b.WriteString("\n")
		case SnapshotCoordinator:
			fmt.Fprintf(&b, "snapshot %s\n", e.Operator)
		case RestoreCoordinator:
			fmt.Fprintf(&b, "restore %s from %q", e.Operator, e.State)
			if e.Held != nil {
				fmt.Fprintf(&b, ", held %v", e.Held)
			}
			b.WriteString("\n")
		case ResetSubtasks:
			fmt.Fprintf(&b, "reset subtasks %v of %s\n", e.Subtasks, e.Operator)
		case InferParallelism:
			fmt.Fprintf(&b, "infer parallelism of %s\n", e.Vertex)
		case Deploy:
			fmt.Fprintf(&b, "deploy %s on %s", e.Attempt, e.Worker)
			if e.Speculative {
				b.WriteString(", speculative")
			}
			for _, in := range e.Inputs {
				r := in.Range
				fmt.Fprintf(&b, ", %s %d-%d:%d-%d", in.DataSet, r.FirstPartition, r.LastPartition, r.FirstSubpartition, r.LastSubpartition)
			}
			b.WriteString("\n")
		case Cancel:
			fmt.Fprintf(&b, "cancel %s on %s\n", e.Attempt, e.Worker)
		case Release:
			fmt.Fprintf(&b, "release on %s %v\n", e.Worker, e.Partitions)
		case CommitOutput:
			for _, a := range e.Attempts {
				fmt.Fprintf(&b, "commit %s\n", a)
			}
		case WithdrawOutput:
			fmt.Fprintf(&b, "take back output, but of %v\n", e.Keep)
		case SetTimer:
			fmt.Fprintf(&b, "timer at %v\n", e.At)
		case StopTimer:
			b.WriteString("no timer\n")
		case JobStatus:
			fmt.Fprintf(&b, "status %s", e.Status)
			if e.Err != nil {
				fmt.Fprintf(&b, ": %v", e.Err)
			}
			b.WriteString("\n")
		case Terminal:
			fmt.Fprintf(&b, "TERMINAL %s\n", e.Status)
		}
	}
	if b.Len() == 0 {
		return "ok\n"
	}
	return b.String()
}
