package master

import (
	"errors"
	"fmt"

	"benchrun/runtime/control"
	"benchrun/runtime/joblog"
	"benchrun/runtime/operator"
	"benchrun/runtime/scheduling/batch"
)

// commitRounds are the rounds of commits that are asked for and not yet answered.
type commitRounds struct {
	rounds [][]joblog.AttemptID
	busy   bool // one is being carried out
}

// reports is where attempts leave what they report.
func (m *Batch) reports() string { return control.ReportsOf(m.cfg.OutputDir, m.cfg.Run) }

// commitNext carries out one round after the other beside the loop.
func (m *Batch) commitNext() {
	if m.commits.busy || len(m.commits.rounds) == 0 {
		return
	}
	m.commits.busy = true
	round := m.commits.rounds[0]
	m.commits.rounds = m.commits.rounds[1:]
	m.work.Go(func() {
		e := m.commit(round)
		m.loop.post(func() {
			m.commits.busy = false
			m.step(e)
			m.commitNext()
			m.finishEnd()
		})
	})
}

// mayAct tells whether what this master does outside of the job's log still counts.
func (m *Batch) mayAct() error {
	if err := m.log.folder.err(); err != nil {
		return err
	}
	if m.ctx.Err() != nil {
		return errClosed
	}
	if m.cfg.Leads != nil {
		return m.cfg.Leads()
	}
	return nil
}

var errClosed = errors.New("the master is closed")

// commit makes the output of attempts visible and then durable, all of them at
// one go. A round ends at its first failure: what is wrong with one is most
// likely wrong with the next, and less is half done. Before the first it looks
// whether all is there that a second try could not bring back.
func (m *Batch) commit(round []joblog.AttemptID) batch.OutputCommitted {
	var missing *control.MissingReportsError
	for _, id := range round {
		if err := control.FindReports(m.reports(), id); err != nil {
			return batch.OutputCommitted{Err: err, Permanent: errors.As(err, &missing)}
		}
	}
	var e batch.OutputCommitted
	folders := map[string]bool{}
	for _, id := range round {
		if e.Err = m.commitAttempt(id, folders); e.Err != nil {
			e.Permanent = errors.As(e.Err, &missing)
			break
		}
		e.Attempts = append(e.Attempts, id)
	}
	if len(folders) == 0 && len(e.Attempts) == 0 {
		return e
	}
	if err := errors.Join(control.SyncReports(m.reports()), syncAll(folders)); err != nil {
		return batch.OutputCommitted{Err: err}
	}
	return e
}

func (m *Batch) commitAttempt(id joblog.AttemptID, folders map[string]bool) error {
	if err := m.mayAct(); err != nil {
		return fmt.Errorf("commit %s: %w", id, err)
	}
	reports, err := control.CommitReports(m.reports(), id)
	if err != nil {
		return err
	}
	for _, r := range reports {
		if f, ok := r.Data.(*operator.FileReport); ok && len(f.Files) > 0 {
			folders[f.Dir] = true
			if err := operator.CommitFiles(f); err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
		}
	}
	return nil
}

// syncAll makes durable what is in folders of file sinks.
func syncAll(folders map[string]bool) error {
	var errs []error
	for dir := range folders {
		errs = append(errs, operator.SyncFiles(dir))
	}
	return errors.Join(errs...)
}

// withdraw takes back what masters before this one have committed, beside the
// loop, once the log is what it is to be: with an empty log and half of the output
// gone the next master does the same again.
func (m *Batch) withdraw(keep []joblog.AttemptID) {
	kept := make(map[joblog.AttemptID]bool, len(keep))
	for _, id := range keep {
		kept[id] = true
	}
	m.log.do(func() {
		m.log.insist(takesBack, func() error {
			if err := m.mayAct(); err != nil {
				return err
			}
			return control.WithdrawReports(m.reports(), uint64(m.cfg.Epoch), kept, m.undo)
		}, func(err error) { m.step(batch.OutputWithdrawn{Err: err}) })
	})
}

// undo takes back the files that reports speak of. Those of another run of a job
// are its user's.
func (m *Batch) undo(reports []control.Report) error {
	folders := map[string]bool{}
	for _, r := range reports {
		f, ok := r.Data.(*operator.FileReport)
		if !ok || f.Run != m.cfg.Run || len(f.Files) == 0 {
			continue
		}
		if err := m.mayAct(); err != nil {
			return err
		}
		folders[f.Dir] = true
		if err := operator.WithdrawFiles(f); err != nil {
			return err
		}
	}
	return syncAll(folders)
}

// dropOutput removes what attempts have left that do not count, whether they
// came to report it or not.
func (m *Batch) dropOutput() error {
	if err := m.mayAct(); err != nil {
		return err
	}
	epoch := uint64(m.cfg.Epoch)
	errs := []error{control.DropReports(m.reports(), epoch)}
	for i := range m.cfg.Graph.Vertices {
		for _, o := range m.cfg.Graph.Vertices[i].Operators {
			f, ok, err := operator.SinkFolder(o.Operator, o.ID, o.Params, m.cfg.OutputDir, m.cfg.Run)
			if ok && err == nil {
				err = operator.DropFiles(f, epoch)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
