package master

import (
	"slices"

	"benchrun/runtime/control"
	"benchrun/runtime/scheduling/batch"
)

// producerLists is what a worker has been told of the producers of data sets, so
// that tasks which all read the same partitions are not told each time.
type producerLists map[string]*producerList

type producerList struct {
	told []batch.Producer // by partition
	last []batch.Producer // what the newest attempt reads, as the scheduler keeps it
}

// news is what has to be told before an attempt can be deployed that reads these
// partitions, from first on: nothing, or one run that begins and ends with what
// the worker does not know.
func (l producerLists) news(dataSet string, first int, producers []batch.Producer) (from int, run []batch.Producer) {
	if len(producers) == 0 {
		return 0, nil
	}
	p := l[dataSet]
	if p == nil {
		p = &producerList{}
		l[dataSet] = p
	}
	// The scheduler makes another list when a producer changes, so that one which
	// is the same is not compared.
	if len(p.last) == len(producers) && &p.last[0] == &producers[0] {
		return 0, nil
	}
	p.last = producers
	if missing := first + len(producers) - len(p.told); missing > 0 {
		p.told = append(p.told, make([]batch.Producer, missing)...)
	}
	told := p.told[first : first+len(producers)]
	i, j := 0, len(producers)
	for i < j && told[i] == producers[i] {
		i++
	}
	for j > i && told[j-1] == producers[j-1] {
		j--
	}
	copy(told[i:j], producers[i:j])
	return first + i, slices.Clone(producers[i:j])
}

// deploy sends an attempt to its worker, behind what it has to know.
func (m *Batch) deploy(x batch.Deploy) {
	m.attempts[x.Attempt] = x.Worker
	m.forgetTask(x.Attempt.TaskID)
	m.sourceDeployed(x)
	w := m.workers.joined[x.Worker]
	if w == nil {
		return // its loss is an event that follows
	}
	lists := m.told[w.id]
	if lists == nil {
		lists = producerLists{}
		m.told[w.id] = lists
	}
	inputs := slices.Clone(x.Inputs)
	for i := range inputs {
		in := &inputs[i]
		if from, run := lists.news(in.DataSet, in.Range.FirstPartition, in.Producers); len(run) > 0 {
			w.conn.Send(control.Producers{Epoch: m.cfg.Epoch, DataSet: in.DataSet, First: from, List: run})
		}
		in.Producers = nil
	}
	w.conn.Send(control.DeployAttempt{
		Epoch: m.cfg.Epoch, Attempt: x.Attempt, Parallelism: x.Parallelism, Inputs: inputs, Outputs: x.Outputs,
	})
}
