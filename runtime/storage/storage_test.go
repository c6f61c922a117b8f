package storage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// drivers run the same tests.
var drivers = map[string]func(t *testing.T) Store{
	"dir": func(t *testing.T) Store {
		s, err := Open("file://" + filepath.Join(t.TempDir(), "a b", "store"))
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
	"mem": func(t *testing.T) Store {
		t.Cleanup(func() { DropMemory(t.Name()) })
		s, err := Open("mem://" + t.Name())
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
	"faulty": func(t *testing.T) Store {
		t.Cleanup(func() { DropMemory(t.Name()) })
		return NewFaulty(OpenMemory(t.Name()))
	},
}

func eachDriver(t *testing.T, fn func(t *testing.T, s Store)) {
	for name, open := range drivers {
		t.Run(name, func(t *testing.T) { fn(t, open(t)) })
	}
}

func write(t *testing.T, s Store, name, data string) {
	t.Helper()
	w, err := s.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{data[:len(data)/2], data[len(data)/2:]} {
		if _, err := io.WriteString(w, part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, s Store, name, want string) {
	t.Helper()
	got, err := ReadAll(s, name)
	if err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v; want %q", name, got, err, want)
	}
}

func expectNone(t *testing.T, s Store, name string) {
	t.Helper()
	if _, err := s.Open(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s: got %v, want not-exist", name, err)
	}
}

func TestStream(t *testing.T) {
	eachDriver(t, func(t *testing.T, s Store) {
		w, err := s.Create("chk-1/sub/data")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "hello ")
		expectNone(t, s, "chk-1/sub/data")
		if names, err := s.List(""); err != nil || len(names) != 0 {
			t.Errorf("an unfinished stream is listed: %v, %v", names, err)
		}
		io.WriteString(w, "world")
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		expect(t, s, "chk-1/sub/data", "hello world")
		if err := w.Commit(); err == nil {
			t.Error("committed twice")
		}
		if _, err := w.Write([]byte("x")); err == nil {
			t.Error("written after the commit")
		}
		if err := w.Abort(); err != nil {
			t.Errorf("abort after commit: %v", err)
		}
		expect(t, s, "chk-1/sub/data", "hello world")

		r, err := s.Open("chk-1/sub/data")
		if err != nil {
			t.Fatal(err)
		}
		if r.Size() != 11 || r.Name() != "chk-1/sub/data" {
			t.Errorf("size %d, name %q", r.Size(), r.Name())
		}
		p := make([]byte, 5)
		if n, err := r.ReadAt(p, 6); n != 5 || (err != nil && err != io.EOF) || string(p) != "world" {
			t.Errorf("ReadAt: %d, %v, %q", n, err, p)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAbortLeavesNothing(t *testing.T) {
	eachDriver(t, func(t *testing.T, s Store) {
		w, err := s.Create("f/x")
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(w, "data")
		if err := w.Abort(); err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err == nil {
			t.Error("committed after the abort")
		}
		expectNone(t, s, "f/x")
		if d, ok := s.(*Dir); ok {
			if left, _ := os.ReadDir(filepath.Join(d.root, "f")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		}
	})
}

func TestPut(t *testing.T) {
	eachDriver(t, func(t *testing.T, s Store) {
		for _, v := range []string{"one", "two"} {
			if err := s.Put("a/b", []byte(v)); err != nil {
				t.Fatal(err)
			}
			expect(t, s, "a/b", v)
		}
		if err := s.PutIfAbsent("a/b", []byte("three")); !errors.Is(err, ErrExists) || !errors.Is(err, fs.ErrExist) {
			t.Errorf("got %v", err)
		}
		expect(t, s, "a/b", "two")
		if err := s.PutIfAbsent("a/c", []byte("four")); err != nil {
			t.Fatal(err)
		}
		expect(t, s, "a/c", "four")
	})
}

func TestOneOfManyWins(t *testing.T) {
	eachDriver(t, func(t *testing.T, s Store) {
		var won atomic.Int32
		var winner atomic.Value
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				v := fmt.Sprint(i)
				switch err := s.PutIfAbsent("leader/epoch-1", []byte(v)); {
				case err == nil:
					won.Add(1)
					winner.Store(v)
				case !errors.Is(err, ErrExists):
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d won", won.Load())
		}
		expect(t, s, "leader/epoch-1", winner.Load().(string))
	})
}

func TestListAndDelete(t *testing.T) {
	eachDriver(t, func(t *testing.T, s Store) {
		for _, n := range []string{"chk-1/a", "chk-1/sub/b", "chk-10/a", "chk-1.x", "top"} {
			write(t, s, n, n)
		}
		for prefix, want := range map[string]string{
			"":          "chk-1.x chk-1/a chk-1/sub/b chk-10/a top",
			"chk-1":     "chk-1.x chk-1/a chk-1/sub/b chk-10/a",
			"chk-1/":    "chk-1/a chk-1/sub/b",
			"chk-1/s":   "chk-1/sub/b",
			"missing/x": "",
		} {
			got, err := s.List(prefix)
			if err != nil || strings.Join(got, " ") != want {
				t.Errorf("List(%q) = %v, %v; want %s", prefix, got, err, want)
			}
		}
		if err := s.Delete("chk-1/a"); err != nil {
			t.Error(err)
		}
		if err := s.Delete("chk-1/a"); err != nil {
			t.Errorf("delete of a missing one: %v", err)
		}
		if err := s.Delete("nowhere/at/all"); err != nil {
			t.Errorf("delete in a missing folder: %v", err)
		}
		if err := s.DeleteAll("chk-1"); err != nil {
			t.Error(err)
		}
		if err := s.DeleteAll("chk-1"); err != nil {
			t.Errorf("delete of a missing folder: %v", err)
		}
		if got, _ := s.List(""); !slices.Equal(got, []string{"chk-1.x", "chk-10/a", "top"}) {
			t.Errorf("left: %v", got)
		}
		if err := s.DeleteAll(""); err == nil {
			t.Error("the whole store was deleted")
		}
	})
}

func TestNamesStayInside(t *testing.T) {
	eachDriver(t, func(t *testing.T, s Store) {
		for _, n := range []string{"", ".", "..", "../x", "a/../../x", "/abs", "a//b", "a/", `a\b`, "a\x00b", "d/.tmp-1"} {
			if _, err := s.Create(n); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("Create(%q): %v", n, err)
			}
			if _, err := s.Open(n); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("Open(%q): %v", n, err)
			}
			if err := s.Put(n, nil); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("Put(%q): %v", n, err)
			}
			if err := s.DeleteAll(n); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("DeleteAll(%q): %v", n, err)
			}
		}
		if _, err := s.List("../"); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("List: %v", err)
		}
	})
}

func TestURLOpensTheSameStore(t *testing.T) {
	eachDriver(t, func(t *testing.T, s Store) {
		write(t, s, "x", "data")
		again, err := Open(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		expect(t, again, "x", "data")
	})
}

func TestOpenURLs(t *testing.T) {
	dir := t.TempDir()
	for url, want := range map[string]string{
		"":                      "empty",
		"s3://bucket/x":         "comes with a later version",
		"ftp://x":               "unknown scheme",
		"file://host/x":         "file:///absolute/path",
		"mem://":                "mem://name",
		filepath.Join(dir, "p"): "",
		"file://" + dir + "/q":  "",
	} {
		_, err := Open(url)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v, want %q", url, err, want)
		}
	}
	if _, err := OpenExisting(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("OpenExisting: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("OpenExisting made the directory")
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(filepath.Join(dir, "file")); err == nil {
		t.Error("a file was opened as a store")
	}
}

// What a store holds is its owner's alone; others may see the folder that it was
// told to use. Fails if temp leaves either to the umask.
func TestStoreIsItsOwnersAlone(t *testing.T) {
	root := filepath.Join(t.TempDir(), "store")
	d, err := OpenDir(root)
	if err == nil {
		err = d.Put("chk-1/_metadata", []byte("x"))
	}
	var w Writer
	if err == nil {
		w, err = d.Create("chk-1/state/7")
	}
	if err == nil {
		err = w.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	if err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		seen++
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		return nil
	}); err != nil || seen != 4 {
		t.Errorf("%d entries, %v", seen, err)
	}
	if info, err := os.Stat(root); err != nil || info.Mode().Perm()&0o022 != 0 {
		t.Errorf("the root: %v, %v", info.Mode(), err)
	}
}

// Only what was synced survives a crash.
func TestCrashClone(t *testing.T) {
	m := OpenMemory(t.Name())
	defer DropMemory(t.Name())
	defer DropMemory(t.Name() + "/crashed")
	crash := func() *Memory { return m.CrashClone(t.Name()+"/crashed", nil) }

	write(t, m, "chk-1/data", "d")
	expectNone(t, crash(), "chk-1/data")
	// The folder's own entry counts, too.
	m.mu.Lock()
	m.mu.durable["chk-1/data"] = m.mu.live["chk-1/data"]
	m.mu.Unlock()
	expectNone(t, crash(), "chk-1/data")
	if err := m.SyncDir("chk-1"); err != nil {
		t.Fatal(err)
	}
	expect(t, crash(), "chk-1/data", "d")

	if err := m.Put("chk-2/sub/meta", []byte("m")); err != nil {
		t.Fatal(err)
	}
	expect(t, crash(), "chk-2/sub/meta", "m")

	write(t, m, "chk-1/more", "x")
	w, _ := m.Create("chk-1/open")
	io.WriteString(w, "y")
	c := m.CrashClone(t.Name()+"/crashed", func(n string) bool { return n == "chk-1/more" })
	expect(t, c, "chk-1/more", "x")
	expectNone(t, c, "chk-1/open")

	if err := m.DeleteAll("chk-1"); err != nil {
		t.Fatal(err)
	}
	expect(t, crash(), "chk-1/data", "d")
	if err := m.SyncDir(""); err != nil {
		t.Fatal(err)
	}
	expectNone(t, crash(), "chk-1/data")
	if err := m.SyncDir("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sync of a missing folder: %v", err)
	}
}

func TestSyncDirOnDisk(t *testing.T) {
	s := drivers["dir"](t)
	write(t, s, "a/b/c", "x")
	for _, folder := range []string{"a/b", "a", ""} {
		if err := s.SyncDir(folder); err != nil {
			t.Errorf("%q: %v", folder, err)
		}
	}
	if err := s.SyncDir("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestFaultError(t *testing.T) {
	s := NewFaulty(drivers["dir"](t))
	write(t, s, "before", "x")
	w, err := s.Create("open")
	if err != nil {
		t.Fatal(err)
	}
	s.Set(FaultError, 0)
	_, werr := w.Write([]byte("x"))
	_, cerr := s.Create("x")
	_, oerr := s.Open("before")
	_, lerr := s.List("")
	for i, err := range []error{werr, w.Commit(), cerr, oerr, lerr, s.Put("x", nil), s.PutIfAbsent("x", nil),
		s.Delete("before"), s.DeleteAll("before"), s.SyncDir("")} {
		if !errors.Is(err, syscall.EIO) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	s.Clear()
	hit, err := s.Create("hit")
	if err != nil {
		t.Fatal(err)
	}
	s.Set(FaultError, 0)
	hit.Write([]byte("lost"))
	s.Clear()
	if err := hit.Commit(); !errors.Is(err, syscall.EIO) {
		t.Errorf("commit of a stream with a lost write: %v", err)
	}
	if names, err := s.List(""); err != nil || !slices.Equal(names, []string{"before"}) {
		t.Errorf("after the fault: %v, %v", names, err)
	}
}

func TestFaultFull(t *testing.T) {
	s := NewFaulty(drivers["mem"](t))
	write(t, s, "before", "x")
	s.Set(FaultFull, 0)
	if err := s.Put("x", []byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Create("x"); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("create: %v", err)
	}
	expect(t, s, "before", "x")
	if err := s.Delete("before"); err != nil {
		t.Errorf("delete: %v", err)
	}
}

// Torn: a prefix is there, and the writer was told.
func TestFaultTorn(t *testing.T) {
	s := NewFaulty(drivers["dir"](t))
	w, err := s.Create("stream")
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("0123"))
	s.Set(FaultTorn, 0)
	if n, err := w.Write([]byte("456789")); err == nil || n != 3 {
		t.Errorf("write: %d, %v", n, err)
	}
	if err := s.Put("put", []byte("0123456789")); err == nil {
		t.Error("put said ok")
	}
	s.Clear()
	// The fault is over, but this stream has a hole.
	if err := w.Commit(); err == nil {
		t.Error("commit of a torn stream said ok")
	}
	expect(t, s, "stream", "0123456")
	expect(t, s, "put", "01234")
}

func TestFaultEndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewFaulty(newMemory("x"))
		s.SetDelay(time.Second)
		s.Set(FaultSlow, 10*time.Second)
		start := time.Now()
		for range 3 {
			if err := s.Put("x", nil); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("three calls took %v", took)
		}
		s.Set(FaultError, 5*time.Second)
		<-time.After(5*time.Second - time.Nanosecond)
		if s.Active() != FaultError || s.Put("x", nil) == nil {
			t.Error("the fault ended early")
		}
		<-time.After(time.Nanosecond)
		if err := s.Put("x", nil); err != nil || s.Active() != FaultNone {
			t.Errorf("the fault did not end: %v", err)
		}
	})
}

func TestParseFaultKind(t *testing.T) {
	for _, k := range []string{"error", "slow", "full", "torn"} {
		if got, err := ParseFaultKind(k); err != nil || string(got) != k {
			t.Errorf("%s: %v, %v", k, got, err)
		}
	}
	if _, err := ParseFaultKind("wet"); err == nil {
		t.Error("an unknown kind was accepted")
	}
}

// A fault point at each step of a stream's life stops it, and the stream is
// then absent unless the commit had been done.
func TestFaultPoints(t *testing.T) {
	boom := errors.New("boom")
	eachDriver(t, func(t *testing.T, s Store) {
		for i, p := range []struct {
			arm     func() func()
			present bool
		}{
			{func() func() { return beforeCreate.Arm(func(int, string) error { return boom }) }, false},
			{func() func() { return beforeWrite.Arm(func(int, string) error { return boom }) }, false},
			{func() func() { return beforeCommit.Arm(func(int, string) error { return boom }) }, false},
			{func() func() { return afterCommit.Arm(func(int, string) error { return boom }) }, true},
		} {
			name := fmt.Sprint("f", i)
			disarm := p.arm()
			err := func() error {
				w, err := s.Create(name)
				if err != nil {
					return err
				}
				w.Write([]byte("data"))
				return w.Commit()
			}()
			disarm()
			if !errors.Is(err, boom) {
				t.Errorf("point %d: %v", i, err)
			}
			if p.present {
				expect(t, s, name, "data")
			} else {
				expectNone(t, s, name)
			}
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	eachDriver(t, func(t *testing.T, s Store) {
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for j := range 20 {
					name := fmt.Sprintf("chk-%d/f%d", j, i)
					data := bytes.Repeat([]byte{byte(i)}, 1000)
					w, err := s.Create(name)
					if err != nil {
						t.Error(err)
						return
					}
					w.Write(data)
					if err := w.Commit(); err != nil {
						t.Error(err)
					}
					if got, err := ReadAll(s, name); err != nil || !bytes.Equal(got, data) {
						t.Errorf("%s: %v", name, err)
					}
					if _, err := s.List(fmt.Sprintf("chk-%d/", j)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if names, err := s.List(""); err != nil || len(names) != 80 {
			t.Errorf("%d streams, %v", len(names), err)
		}
	})
}
