package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"benchrun/runtime/control"
	"benchrun/runtime/scheduling/batch"
)

func TestIdentity(t *testing.T) {
	for _, x := range []struct {
		name, content, temp string // of the files that are there
		names               []batch.Worker
		err                 string
	}{
		{"nothing there", "", "", nil, ""},
		{"two names", `{"format":1,"names":["worker-0","worker-2"]}`, "", []batch.Worker{"worker-0", "worker-2"}, ""},
		{"a process died while it wrote", `{"format":1,"names":["worker-0"]}`, `{"format":1,"na`, []batch.Worker{"worker-0"}, ""},
		{"cut off", `{"format":1,"na`, "", nil, "unexpected end"},
		{"of another version", `{"format":2,"names":["worker-0"]}`, "", nil, "format 2, not 1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range map[string]string{"identity.json": x.content, "identity.json.new": x.temp} {
				if b != "" {
					if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			i, err := openIdentity(dir, "worker-9")
			if (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) || err != nil && !strings.Contains(err.Error(), i.file) {
				t.Errorf("error %v", err)
			}
			if got := i.others(""); !slices.Equal(got, x.names) {
				t.Errorf("names %v", got)
			}
			for range 2 { // it is usable whatever was there
				if err := i.add("worker-7"); err != nil {
					t.Fatal(err)
				}
			}
			again, err := openIdentity(dir, "worker-9")
			if again.id != i.id || !strings.HasPrefix(i.id, "worker-9.") {
				t.Errorf("it is %q, and then %q", i.id, again.id)
			}
			if got := again.others("worker-7"); err != nil || !slices.Equal(got, x.names) || len(again.others("")) != len(x.names)+1 {
				t.Errorf("written and read again: %v, %v", again.others(""), err)
			}
			if err := again.forget(); err != nil || len(again.others("")) != 0 {
				t.Errorf("forgotten: %v, %v", again.others(""), err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// A worker that is taken for dead again and again forgets its oldest names. Fails
// if add does not cut the list.
func TestIdentityIsBounded(t *testing.T) {
	i, err := openIdentity(t.TempDir(), "worker-9")
	if err != nil {
		t.Fatal(err)
	}
	for n := range maxNames + 3 {
		if err := i.add(batch.Worker(fmt.Sprint("worker-", n))); err != nil {
			t.Fatal(err)
		}
	}
	if got := i.others(""); len(got) != maxNames || got[0] != "worker-3" {
		t.Errorf("%d names from %s", len(got), got[0])
	}
}

// Whoever has a folder answers for those that had it before, until the job is
// over, also for one that died when it had just said hello. Fails if join does not
// note the name, or if giveUp does not forget it.
func TestWorkerAnswersForItsFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "w")
		for index, formerly := range [][]batch.Worker{nil, {"worker-0"}, {"worker-0", "worker-1"}, nil} {
			w, m := startBatch(t, dir, index)
			if index == 1 {
				w.Kill()
				m.Close(false)
				continue
			}
			m.Send(control.BatchJob{Epoch: 1, Job: "job", Graph: alone(t, true)})
			m.Send(control.AskInventory{Epoch: 1})
			found := false
			for _, x := range m.messages() {
				if inv, ok := x.(control.Inventory); ok {
					found = true
					if !slices.Equal(inv.Formerly, formerly) {
						t.Errorf("worker-%d answers for %v, not %v", index, inv.Formerly, formerly)
					}
				}
			}
			if !found {
				t.Errorf("worker-%d does not answer", index)
			}
			if index == 2 {
				m.Send(control.JobOver{Epoch: 1})
				synctest.Wait()
			}
			w.Kill()
			m.Close(false)
		}
	})
}
