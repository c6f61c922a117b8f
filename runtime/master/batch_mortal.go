package master

import (
	"errors"
	"sync/atomic"

	"benchrun/runtime/joblog"
)

// mortalFolder is a folder that a master which was killed writes to no more.
type mortalFolder struct {
	joblog.Folder
	dead atomic.Bool
}

var errDead = errors.New("the master was killed")

func (f *mortalFolder) err() error {
	if f.dead.Load() {
		return errDead
	}
	return nil
}

func (f *mortalFolder) Create(name string) (joblog.File, error) {
	if err := f.err(); err != nil {
		return nil, err
	}
	x, err := f.Folder.Create(name)
	if err != nil {
		return nil, err
	}
	return &mortalFile{x, f}, nil
}

func (f *mortalFolder) Truncate(name string, size int64) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Folder.Truncate(name, size)
}

func (f *mortalFolder) Publish(temp, name string) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Folder.Publish(temp, name)
}

func (f *mortalFolder) Remove(name string) error {
	if err := f.err(); err != nil {
		return err
	}
	return f.Folder.Remove(name)
}

type mortalFile struct {
	joblog.File
	f *mortalFolder
}

func (x *mortalFile) Write(b []byte) (int, error) {
	if err := x.f.err(); err != nil {
		return 0, err
	}
	return x.File.Write(b)
}
