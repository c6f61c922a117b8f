package cluster

import (
	"slices"
	"sync"
)

// folders knows who has the folders of a batch job's workers. A folder outlives its
// worker: another one may be about to take it over, with all that is in it. The
// zero value is empty; its lock is a leaf.
type folders struct {
	mu    sync.Mutex
	of    map[int]string // of each worker that there ever was
	users map[string]int // workers that live or are to come, by folder
	n     int
}

// give notes that a worker is to be started on a folder of its own, or on one that
// was kept for it.
func (f *folders) give(index int, dir string, kept bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of, f.users = map[int]string{}, map[string]int{}
	}
	f.of[index] = dir
	f.n = max(f.n, index+1)
	if !kept {
		f.users[dir]++
	}
}

// keep notes that another worker will have a folder.
func (f *folders) keep(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[dir]++
}

// drop notes that a worker is gone, or does not come.
func (f *folders) drop(dir string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[dir]--
}

// unheard are the newest workers of all folders that somebody has or will have, but
// for some: what is in those folders they have not said.
func (f *folders) unheard(but []int) (list []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	newest := map[string]int{}
	for i := range f.n {
		if dir, ok := f.of[i]; ok && f.users[dir] > 0 {
			newest[dir] = i
		}
	}
	for i := range f.n {
		if dir, ok := f.of[i]; ok && f.users[dir] > 0 && newest[dir] == i && !slices.Contains(but, i) {
			list = append(list, i)
		}
	}
	return list
}

// forgone are the workers that are gone and whose folders nobody has or will have:
// a master must not wait for what they had.
func (f *folders) forgone() (list []int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.n {
		if dir, ok := f.of[i]; ok && f.users[dir] == 0 {
			list = append(list, i)
		}
	}
	return list
}
