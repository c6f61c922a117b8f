package joblog

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"
)

// record finds the n-th record of a file, the header being number 0.
func record(data []byte, n int) (from, to int) {
	for ; ; n-- {
		to = from + frameBytes + int(binary.LittleEndian.Uint32(data[from+32:]))
		if n == 0 {
			return from, to
		}
		from = to
	}
}

// changed changes a record and makes its checksum fit.
func changed(data []byte, n int, change func(head []byte, payload []byte) []byte) []byte {
	from, to := record(data, n)
	head := slices.Clone(data[from : from+frameBytes])
	payload := change(head, slices.Clone(data[from+frameBytes:to]))
	binary.LittleEndian.PutUint32(head[32:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(head[36:], checksum(head, payload))
	return slices.Concat(data[:from], head, payload, data[to:])
}

// Three files of three events each, and what may have happened to them. A log
// that is refused says file, offset and record, and is left as it was; begun
// from scratch it is empty.
//
// Fails if any check of readFolder, readRecords or readFrame is left out.
func TestDamageIsRefusedWithItsPlace(t *testing.T) {
	whole := logOf(t)
	s := open(t, whole, 3)
	for i := range 3 {
		s.Append(Entry{Event: finished("b", i, 3, 3)})
	}
	shut(t, s)
	one := whole.entries["log.1"].data
	second, third := func() (int, int) { return record(one, 2) }()
	end := len(one)
	for _, c := range []struct {
		what   string
		damage func(files map[string]*inode)
		want   string // after "open job log memory: "; "": it is opened
		torn   string
		events int
	}{
		{"nothing", func(map[string]*inode) {}, "", "", 9},
		{"a torn end of the last file", func(f map[string]*inode) {
			_, to := record(f["log.3"].data, 2)
			f["log.3"].data = f["log.3"].data[:to+7]
		}, "", fmt.Sprintf("7 bytes at log.3:%d", third), 8},
		{"a torn end of a file in the middle", func(f map[string]*inode) { f["log.1"].data = one[:end-5] },
			fmt.Sprintf("job log is damaged at log.1:%d (record 3): the record has %d bytes, %d are there", third, end-third-frameBytes, end-third-frameBytes-5), "", 0},
		{"a flipped bit in a payload", func(f map[string]*inode) { f["log.1"].data[second+frameBytes+1] ^= 4 },
			fmt.Sprintf("job log is damaged at log.1:%d (record 2): wrong checksum", second), "", 0},
		{"a flipped bit in the length", func(f map[string]*inode) { f["log.1"].data[second+34] ^= 1 },
			fmt.Sprintf("job log is damaged at log.1:%d (record 2): the record has %d bytes, %d are there", second, third-second-frameBytes+1<<16, end-second-frameBytes), "", 0},
		{"no record where one is due", func(f map[string]*inode) { f["log.1"].data[second] = 'X' },
			fmt.Sprintf("job log is damaged at log.1:%d (record 2): no record begins here", second), "", 0},
		{"a record that is missing", func(f map[string]*inode) { f["log.1"].data = slices.Concat(one[:second], one[third:]) },
			fmt.Sprintf("job log is damaged at log.1:%d (record 2): record 3 where 2 is due", second), "", 0},
		{"a record that comes twice", func(f map[string]*inode) { f["log.1"].data = slices.Concat(one[:third], one[second:]) },
			fmt.Sprintf("job log is damaged at log.1:%d (record 3): record 2 where 3 is due", third), "", 0},
		{"a record of another master", func(f map[string]*inode) {
			f["log.1"].data = changed(one, 2, func(h, p []byte) []byte { h[8] = 7; return p })
		}, fmt.Sprintf("job log is damaged at log.1:%d (record 2): record of epoch 7 in a file of epoch 1", second), "", 0},
		{"a record of another version", func(f map[string]*inode) {
			f["log.1"].data = changed(one, 2, func(h, p []byte) []byte { h[4] = 9; return p })
		}, fmt.Sprintf("job log is damaged at log.1:%d (record 2): format version 9", second), "", 0},
		{"an event that this program does not know", func(f map[string]*inode) {
			f["log.1"].data = changed(one, 2, func(h, p []byte) []byte { h[5] = 42; return p })
		}, fmt.Sprintf("job log is damaged at log.1:%d (record 2): unknown event type 42", second), "", 0},
		{"an event that is too short", func(f map[string]*inode) {
			f["log.1"].data = changed(one, 2, func(_, p []byte) []byte { return p[:len(p)-1] })
		}, fmt.Sprintf("job log is damaged at log.1:%d (record 2): payload of vertex-finished: it ends too early", second), "", 0},
		{"an event that is too long", func(f map[string]*inode) {
			f["log.1"].data = changed(one, 2, func(_, p []byte) []byte { return append(p, 1, 2) })
		}, fmt.Sprintf("job log is damaged at log.1:%d (record 2): payload of vertex-finished: 2 bytes too many", second), "", 0},
		{"the first file is missing", func(f map[string]*inode) { delete(f, "log.1") },
			"job log is damaged at log.2:0 (header): the log begins with record 4, the files before are missing", "", 0},
		{"a file in the middle is missing", func(f map[string]*inode) { delete(f, "log.2") },
			fmt.Sprintf("job log is damaged at log.1:%d (record 4): records 4 to 6 are missing", end), "", 0},
		{"a file that goes on from before the last one", func(f map[string]*inode) {
			f["log.2"].data = must(appendHeader(nil, header{"job", true}, 2, 8, 7))(t)
		}, "job log is damaged at log.2:0 (record 8): the next file goes on with record 7, from before this one", "", 0},
		{"the newest file is missing", func(f map[string]*inode) { delete(f, "log.3") }, "", "", 6},
		{"no header", func(f map[string]*inode) { f["log.2"].data = one[second:] },
			"job log is damaged at log.2:0 (header): the file has no header: the file begins with a record of type vertex-finished", "", 0},
		{"a file of somebody else", func(f map[string]*inode) { f["log.2"].data = []byte("notes") },
			"job log is damaged at log.2:0 (header): the file has no header: 5 bytes are too few for a record", "", 0},
		{"another version", func(f map[string]*inode) { f["log.2"].data[4] = 9 },
			"job log log.2 has format version 9, this program reads 2", "", 0},
		{"another job", func(f map[string]*inode) {
			f["log.2"].data = changed(f["log.2"].data, 0, func(h, p []byte) []byte { p[1] ^= 1; return p })
		}, `job log log.2 belongs to job "kob", not to "job"`, "", 0},
		{"a newer master", func(f map[string]*inode) {
			f["log.4"] = &inode{data: must(appendHeader(nil, header{job: "job"}, 12, 10, 0))(t)}
		}, "job log log.4 was written in epoch 12, this master has epoch 9", "", 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			d := whole.process()
			c.damage(d.entries)
			was := d.process()
			h, err := openHardened(d, Config{Job: "job", Epoch: 9})
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := replayed(t, h); len(got) != c.events || h.Torn() != c.torn {
					t.Errorf("%d events, torn at %q; want %d, %q", len(got), h.Torn(), c.events, c.torn)
				}
				return
			}
			if want := "open job log memory: " + c.want; err == nil || err.Error() != want {
				t.Fatalf("got  %v\nwant %s", err, want)
			}
			var damaged *DamagedError
			var version *VersionError
			var foreign *ForeignError
			var stale *StaleError
			if !errors.As(err, &damaged) && !errors.As(err, &version) && !errors.As(err, &foreign) && !errors.As(err, &stale) {
				t.Errorf("%T tells a caller nothing", err)
			}
			if !reflect.DeepEqual(d.entries, was.entries) {
				t.Error("the refused log was changed")
			}
			if err := Wipe(d); err != nil {
				t.Fatal(err)
			}
			if got, err := read(d, 9); err != nil || len(got) > 0 {
				t.Errorf("from scratch: %v, %v", got, err)
			}
		})
	}
}

// A log of one file, as a job has that loses its master once. What was synced is
// no torn end, whatever has happened to it, as long as something behind it says
// so; what was written last is one. A compacted file is good as a whole or not.
//
// Fails if
//   - endsTooEarly looks at the header only, or not at all,
//   - endsTooEarly, or encode, takes what is due next for synced,
//   - begin or sync does not count what it has synced,
//   - the header of a compacted file does not vouch for its records.
func TestTheLastFileIsDamagedWhereItWasSynced(t *testing.T) {
	synced := func(compact bool) []byte {
		d := newMemory()
		s := open(t, d, 1)
		for i := range 4 {
			appendAll(t, s, finished("a", i, 1, 1))
		}
		if compact {
			shut(t, s)
			s = must(openHardened(d, Config{Job: "job", Epoch: 2}))(t)
			if err := s.compact(); err != nil {
				t.Fatal(err)
			}
			appendOne := func(i int) {
				s.append(queued{Entry: Entry{Event: finished("b", i, 1, 2)}, number: uint64(i + 1)})
				s.sync()
			}
			appendOne(0)
			appendOne(1)
			return d.entries["log.3"].data
		}
		shut(t, s)
		return d.entries["log.1"].data
	}
	// afterTrouble is a file that begins with what could not be written into another.
	afterTrouble := func() []byte {
		d := newMemory()
		s := must(openHardened(d, Config{Job: "job", Epoch: 1}))(t)
		d.breakDown(errors.New("disk full"))
		s.append(queued{Entry: Entry{Event: finished("a", 0, 1, 1)}, number: 1})
		s.sync()
		d.breakDown(nil)
		s.sync()
		s.append(queued{Entry: Entry{Event: finished("a", 1, 1, 1)}, number: 2})
		s.sync()
		return d.entries["log.2"].data
	}
	for _, c := range []struct {
		what    string
		data    []byte
		records int // without the header
		whole   int // that the header vouches for
	}{
		{"written", synced(false), 4, 0},
		{"compacted", synced(true), 6, 4},
		{"begun after trouble", afterTrouble(), 2, 0},
	} {
		last, end := record(c.data, c.records)
		if end != len(c.data) {
			t.Fatalf("%s: %d records end at %d of %d", c.what, c.records, end, len(c.data))
		}
		_, whole := record(c.data, c.whole)
		check := func(what string, at int, data []byte, damage bool) {
			d := newMemory()
			d.entries["log.1"] = &inode{data: data, synced: len(data)}
			s, err := openHardened(d, Config{Job: "job", Epoch: 9})
			var damaged *DamagedError
			switch {
			case !damage && err != nil:
				t.Fatalf("%s, %s at %d: %v", c.what, what, at, err)
			case damage && (!errors.As(err, &damaged) || damaged.File != "log.1" || damaged.Offset > int64(at)):
				t.Fatalf("%s, %s at %d: %v, not damage there", c.what, what, at, err)
			case !damage && what != "cut" && (s.Torn() != fmt.Sprintf("%d bytes at log.1:%d", end-last, last) || len(replayed(t, s)) != c.records-1):
				t.Fatalf("%s, %s at %d: torn %q", c.what, what, at, s.Torn())
			}
		}
		for at := frameBytes + 5; at < end; at++ { // behind the header and the job's name
			data := slices.Clone(c.data)
			data[at] ^= 1 << (at % 8)
			check("a flipped bit", at, data, at < last)
			if at < last && c.data[at] != 0 {
				data = slices.Clone(c.data)
				clear(data[at:min(at+7, last)])
				check("a hole", at, data, true)
			}
			check("cut", at, c.data[:at], at < whole)
		}
	}
}

// The faithful log knows less of what has happened to it, and what it finds out
// fails the whole replay (ST-4, ST-10).
//
// H10: an event that this program cannot decode (Flink: a class in its
// accumulators that the system class loader does not have) fails the replay of
// everything; the job begins anew (scenario g). The hardened store refuses it
// with its place and leaves the choice to the user
// (TestDamageIsRefusedWithItsPlace).
//
// Fails if Replay goes on behind what it cannot decode, or with the next file.
func TestH10FaithfulReplayFailsAsAWhole(t *testing.T) {
	whole := newMemory()
	s := openFaithful(t, whole)
	for i := range 3 {
		s.Append(Entry{Event: finished("a", i, 0, 1), Cut: i == 1})
	}
	shut(t, s)
	at := len(whole.entries["events.0"].data) / 2
	for _, c := range []struct {
		what   string
		damage func(b []byte) []byte // of the first file
		want   string
		events int
	}{
		{"nothing", func(b []byte) []byte { return b }, "", 3},
		{"a torn end", func(b []byte) []byte { return b[:len(b)-1] }, "", 2},
		{"a torn head", func(b []byte) []byte { return b[:at+5] }, "", 2},
		{"an event that this program cannot decode", func(b []byte) []byte { b[at+8] = 0x7e; return b },
			fmt.Sprintf("job log is damaged at events.0:%d (record 2): payload of vertex-finished: it ends too early", at), 1},
		{"an unknown type", func(b []byte) []byte { b[at+3] = 9; return b },
			fmt.Sprintf("job log is damaged at events.0:%d (record 2): unknown event type 9", at), 1},
		{"a negative length", func(b []byte) []byte { b[at+4] = 0x80; return b },
			fmt.Sprintf("job log is damaged at events.0:%d (record 2): length %d", at, -1<<31+at-8), 1},
	} {
		d := whole.process()
		d.entries["events.0"].data = c.damage(d.entries["events.0"].data)
		s := openFaithful(t, d)
		events := 0
		err := s.Replay(func(Event) error { events++; return nil })
		want := ""
		if c.want != "" {
			want = "replay job log memory: " + c.want
		}
		if fmt.Sprint(err) != cmp.Or(want, "<nil>") {
			t.Errorf("%s: %v, not %q", c.what, err, want)
		}
		if events != c.events {
			t.Errorf("%s: %d events, not %d", c.what, events, c.events)
		}
		shut(t, s)
	}
}

// No clock is written down, and none is compared with what another process has
// written: masters are ordered by their epochs, records by their numbers. A
// clock that jumps has nothing to break here.
//
// Fails if an event gets a field that holds a time.
func TestNoClockInTheLog(t *testing.T) {
	var look func(t reflect.Type, path string)
	look = func(of reflect.Type, path string) {
		switch {
		case of == reflect.TypeFor[time.Time]() || of == reflect.TypeFor[time.Duration]():
			t.Errorf("%s is a %s", path, of)
		case of.Kind() == reflect.Slice:
			look(of.Elem(), path+"[]")
		case of.Kind() == reflect.Struct:
			for i := range of.NumField() {
				look(of.Field(i).Type, path+"."+of.Field(i).Name)
			}
		}
	}
	kinds := map[Kind]bool{}
	for _, e := range events() {
		kinds[e.Kind()] = true
		look(reflect.TypeOf(e), reflect.TypeOf(e).Name())
	}
	for k := KindVertexFinished; k <= KindJobFinished; k++ {
		if !kinds[k] {
			t.Errorf("events has no %s", k)
		}
	}
}
