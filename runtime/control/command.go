package control

// Command is what a master tells a worker to do. A worker refuses those of an
// older leadership than it has seen.
type Command interface {
	// Leadership is the epoch of the master that decided it.
	Leadership() int64
}

// Leadership implements Command; so for all that follow.
func (m Deploy) Leadership() int64 { return m.Epoch }

func (m Cancel) Leadership() int64            { return m.Epoch }
func (m Trigger) Leadership() int64           { return m.Epoch }
func (m Notify) Leadership() int64            { return m.Epoch }
func (m ToReader) Leadership() int64          { return m.Epoch }
func (m StopSources) Leadership() int64       { return m.Epoch }
func (m FailTask) Leadership() int64          { return m.Epoch }
func (m Forget) Leadership() int64            { return m.Epoch }
func (m BatchJob) Leadership() int64          { return m.Epoch }
func (m Peers) Leadership() int64             { return m.Epoch }
func (m AskInventory) Leadership() int64      { return m.Epoch }
func (m Settle) Leadership() int64            { return m.Epoch }
func (m Producers) Leadership() int64         { return m.Epoch }
func (m DeployAttempt) Leadership() int64     { return m.Epoch }
func (m CancelAttempt) Leadership() int64     { return m.Epoch }
func (m ReleasePartitions) Leadership() int64 { return m.Epoch }
func (m Recorded) Leadership() int64          { return m.Epoch }
func (m DropData) Leadership() int64          { return m.Epoch }
func (m JobOver) Leadership() int64           { return m.Epoch }
func (m ToAttempt) Leadership() int64         { return m.Epoch }
