package failpoint

import (
	"fmt"
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// Action is what an armed point does on a hit. A nil error means that
// execution goes on.
type Action func(hit int, subject string) error

// Point is one named place.
type Point struct {
	name  string
	armed atomic.Pointer[arming]
}

type arming struct {
	mu   sync.Mutex
	hits int
	act  Action
}

var registry struct {
	sync.Mutex
	points map[string]*Point
}

// New registers a point under a name that is unique in the program.
func New(name string) *Point {
	registry.Lock()
	defer registry.Unlock()
	if registry.points == nil {
		registry.points = map[string]*Point{}
	}
	if registry.points[name] != nil {
		panic("failpoint: " + name + " is registered twice")
	}
	p := &Point{name: name}
	registry.points[name] = p
	return p
}

// Names lists all points, sorted.
func Names() []string {
	registry.Lock()
	defer registry.Unlock()
	names := make([]string, 0, len(registry.points))
	for n := range registry.points {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Lookup finds a point by its name.
func Lookup(name string) (*Point, error) {
	registry.Lock()
	defer registry.Unlock()
	if p := registry.points[name]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("no fault point %q", name)
}

// Name is the name under which the point is registered.
func (p *Point) Name() string { return p.name }

// Hit passes the point: nil unless it is armed and its action fires.
func (p *Point) Hit(subject string) error {
	a := p.armed.Load()
	if a == nil {
		return nil
	}
	a.mu.Lock()
	a.hits++
	n := a.hits
	a.mu.Unlock()
	if err := a.act(n, subject); err != nil {
		return fmt.Errorf("fault point %s: %w", p.name, err)
	}
	return nil
}

// Armed tells whether the point is armed; for work that is only needed then.
func (p *Point) Armed() bool { return p.armed.Load() != nil }

// Arm installs an action and returns the function that removes it. Only one
// action can be installed at a time.
func (p *Point) Arm(act Action) (disarm func()) {
	a := &arming{act: act}
	if !p.armed.CompareAndSwap(nil, a) {
		panic("failpoint: " + p.name + " is armed already")
	}
	return func() { p.armed.CompareAndSwap(a, nil) }
}

// Once returns an action that fails with err on the n-th hit only.
func Once(n int, err error) Action {
	return func(hit int, _ string) error {
		if hit == n {
			return err
		}
		return nil
	}
}

// Delay returns an action that holds every hit up for d: a slow-down whose
// cause is known, for trials of the measuring itself.
func Delay(d time.Duration) Action {
	return func(int, string) error {
		time.Sleep(d)
		return nil
	}
}
