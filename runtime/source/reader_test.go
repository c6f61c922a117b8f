package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"benchrun/runtime/operator"
	"benchrun/runtime/record"
	"benchrun/runtime/state"
)

// emitted keeps what readers put out.
type emitted struct {
	numbers []uint64
	keys    []uint64
	lines   []string
}

func (e *emitted) Emit(r *record.Record) error {
	e.numbers, e.keys, e.lines = append(e.numbers, r.Number), append(e.keys, r.Key), append(e.lines, string(r.Data))
	return nil
}

func (e *emitted) Watermark(int64) error { return nil }
func (e *emitted) Status(bool) error     { return nil }

type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func always() bool { return true }

func openReader(t failer, kind string, p Params, splits [][]byte) Reader {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReader(kind, raw, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.AddSplits(splits); err != nil {
		t.Fatal(err)
	}
	return r
}

func fresh(t failer, kind string, p Params) [][]byte {
	t.Helper()
	raw, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	splits, err := AllSplits(kind, raw)
	if err != nil {
		t.Fatal(err)
	}
	return splits
}

// deal gives split k to reader k mod n.
func deal(splits [][]byte, n int) [][][]byte {
	out := make([][][]byte, n)
	for k, s := range splits {
		out[k%n] = append(out[k%n], s)
	}
	return out
}

var seqParams = Params{RecordSize: 60, Keys: 10, Splits: 4, Source: 2}

// Bounded sequences emit each number once, whatever the splits, parallelism
// and restores; positions say how far each split is, and no watermark is ahead
// of a number that is still to come from the same reader.
func TestSequenceEmitsEachNumberOnceThroughRestores(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := seqParams
		p.Records = uint64(rapid.IntRange(1, 100).Draw(t, "records"))
		p.Splits = rapid.IntRange(1, 12).Draw(t, "splits")
		var out emitted
		splits := deal(fresh(t, Sequence, p), rapid.IntRange(1, 5).Draw(t, "parallelism"))
		for round := 0; ; round++ {
			readers := make([]Reader, len(splits))
			marks := make([]int64, len(splits))
			counts := make([]int64, len(splits))
			for i, s := range splits {
				readers[i] = openReader(t, Sequence, p, s)
				readers[i].NoMoreSplits()
				marks[i] = record.MinWatermark
			}
			done := make([]bool, len(readers))
			for range rapid.IntRange(0, 20).Draw(t, "turns") {
				i := rapid.IntRange(0, len(readers)-1).Draw(t, "reader")
				before := len(out.numbers)
				n := rapid.IntRange(1, 9).Draw(t, "n")
				progress, _, err := readers[i].Next(&out, n, always)
				if err != nil {
					t.Fatal(err)
				}
				got := out.numbers[before:]
				counts[i] += int64(len(got))
				done[i] = progress == End
				if len(got) > n || len(got) < n && !done[i] || readers[i].Emitted() != counts[i] {
					t.Fatalf("asked for %d, got %d, progress %d, emitted %d", n, len(got), progress, readers[i].Emitted())
				}
				for _, x := range got {
					if int64(x) <= marks[i] {
						t.Fatalf("number %d came behind watermark %d", x, marks[i])
					}
				}
				w := readers[i].Watermark()
				if w < marks[i] || (w == record.MaxWatermark) != done[i] {
					t.Fatalf("watermark %d after %d, at the end %v", w, marks[i], done[i])
				}
				marks[i] = w
			}
			// Positions agree with what came out, as a whole.
			var all [][]byte
			var total uint64
			for _, r := range readers {
				for _, b := range r.Splits() {
					_, k, err := ReadSequenceSplit(b)
					if err != nil {
						t.Fatal(err)
					}
					total += k
					all = append(all, b)
				}
			}
			if len(all) != p.Splits || total != uint64(len(out.numbers)) {
				t.Fatalf("%d of %d splits at %d in sum, %d are out", len(all), p.Splits, total, len(out.numbers))
			}
			if !slices.Contains(done, false) {
				break
			}
			if round > 3 { // to the end
				for _, r := range readers {
					if progress, _, err := r.Next(&out, 1000, always); err != nil || progress != End {
						t.Fatalf("progress %d, %v", progress, err)
					}
				}
				break
			}
			old := make([][][]byte, len(readers))
			for i, r := range readers {
				old[i] = r.Splits()
			}
			splits = state.Redistribute(old, state.Split, rapid.IntRange(1, 5).Draw(t, "to"))
		}
		slices.Sort(out.numbers)
		if uint64(len(out.numbers)) != p.Records {
			t.Fatalf("%d records, want %d", len(out.numbers), p.Records)
		}
		for i, n := range out.numbers {
			if n != uint64(i) {
				t.Fatalf("number %d at place %d", n, i)
			}
		}
	})
}

func TestSequenceOfOneReaderAscends(t *testing.T) {
	p := seqParams
	p.Records = 103
	r := openReader(t, Sequence, p, fresh(t, Sequence, p))
	r.NoMoreSplits()
	var out emitted
	if progress, _, err := r.Next(&out, 1000, always); err != nil || progress != End {
		t.Fatal(progress, err)
	}
	if !slices.IsSorted(out.numbers) || len(out.numbers) != 103 {
		t.Error(out.numbers)
	}
}

func TestSequenceIsIdleUntilItHasSplits(t *testing.T) {
	p := seqParams
	p.Records = 8
	r := openReader(t, Sequence, p, nil)
	var out emitted
	if progress, _, err := r.Next(&out, 10, always); progress != Idle || err != nil || r.Watermark() != record.MinWatermark {
		t.Errorf("no split: progress %d, watermark %d, %v", progress, r.Watermark(), err)
	}
	if err := r.AddSplits(fresh(t, Sequence, p)[:1]); err != nil {
		t.Fatal(err)
	}
	if progress, _, err := r.Next(&out, 10, always); progress != Idle || err != nil {
		t.Errorf("split is read: progress %d, %v", progress, err)
	}
	r.NoMoreSplits()
	if progress, _, err := r.Next(&out, 10, always); progress != End || err != nil || r.Watermark() != record.MaxWatermark {
		t.Errorf("no more: progress %d, watermark %d, %v", progress, r.Watermark(), err)
	}
}

func TestMoreInterruptsAReader(t *testing.T) {
	r := openReader(t, Sequence, seqParams, fresh(t, Sequence, seqParams))
	var out emitted
	left := 7
	progress, _, err := r.Next(&out, 100, func() bool { left--; return left >= 0 })
	if progress != More || err != nil || len(out.numbers) != 7 {
		t.Error(progress, err, out.numbers)
	}
}

// full fails after some records.
type full struct {
	emitted
	room int
}

var errFull = errors.New("full")

func (f *full) Emit(r *record.Record) error {
	if f.room--; f.room < 0 {
		return errFull
	}
	return f.emitted.Emit(r)
}

func TestErrorOfOutputEndsNext(t *testing.T) {
	p := seqParams
	p.Files = files(t, "a\nb\nc\n")
	for _, kind := range []string{Sequence, Lines} {
		r := openReader(t, kind, p, fresh(t, kind, p))
		if _, _, err := r.Next(&full{room: 2}, 100, always); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// Stop ends unbounded splits where they stand; bounded ones run to their end.
func TestStopOfSequence(t *testing.T) {
	for _, records := range []uint64{0, 50} {
		p := seqParams
		p.Records = records
		r := openReader(t, Sequence, p, fresh(t, Sequence, p))
		r.NoMoreSplits()
		var out emitted
		if _, _, err := r.Next(&out, 10, always); err != nil {
			t.Fatal(err)
		}
		r.Stop()
		want := 10
		if records > 0 {
			want = 50
		}
		if progress, _, err := r.Next(&out, 1000, always); progress != End || err != nil {
			t.Fatal(progress, err)
		}
		if len(out.numbers) != want || r.Watermark() != record.MaxWatermark {
			t.Errorf("%d records: %d came out, watermark %d", records, len(out.numbers), r.Watermark())
		}
		var sum uint64
		for _, b := range r.Splits() {
			_, k, err := ReadSequenceSplit(b)
			if err != nil {
				t.Fatal(err)
			}
			sum += k
		}
		if sum != uint64(want) {
			t.Errorf("%d records: positions add up to %d, %d came out", records, sum, want)
		}
	}
}

func TestSplitsThatComeAfterStopDoNotRun(t *testing.T) {
	r := openReader(t, Sequence, seqParams, nil)
	r.Stop()
	if err := r.AddSplits(fresh(t, Sequence, seqParams)); err != nil {
		t.Fatal(err)
	}
	var out emitted
	if progress, _, err := r.Next(&out, 10, always); progress != End || err != nil || len(out.numbers) != 0 {
		t.Errorf("progress %d, %v, %d records", progress, err, len(out.numbers))
	}
	if len(r.Splits()) != seqParams.Splits {
		t.Errorf("%d positions", len(r.Splits()))
	}
}

// TestB40RateIsAnOpenLoop (brianfrankcooper/YCSB#731): numbers of a closed loop
// hide pauses, since nothing is asked for while the system stands still. Here
// records are due by the clock alone, so what was held up comes at once and the
// mean is kept.
//
// Fails if a record's due time is counted from the record before it.
func TestB40RateIsAnOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := seqParams
		p.Rate = 1000
		start := time.Now()
		r := openReader(t, Sequence, p, fresh(t, Sequence, p))
		var out emitted
		runUntil := func(end time.Time) {
			for time.Now().Before(end) {
				progress, at, err := r.Next(&out, 100, always)
				if err != nil {
					t.Fatal(err)
				}
				switch progress {
				case More:
				case Wait:
					time.Sleep(max(time.Nanosecond, min(time.Until(at), time.Until(end))))
				default:
					t.Fatalf("progress %d", progress)
				}
				due := int(time.Since(start).Seconds()*p.Rate) + 1
				if len(out.numbers) > due {
					t.Fatalf("%d records after %v", len(out.numbers), time.Since(start))
				}
			}
		}
		near := func(what string, got, want int) {
			if got < want-1 || got > want+1 {
				t.Errorf("%s: %d records, want %d", what, got, want)
			}
		}
		runUntil(start.Add(2 * time.Second))
		near("2 s", len(out.numbers), 2000)
		if lag, ok := r.Lag(time.Now()); !ok || lag > time.Millisecond {
			t.Errorf("lag %v, %v", lag, ok)
		}
		time.Sleep(3 * time.Second) // held up
		if lag, ok := r.Lag(time.Now()); !ok || lag < 3*time.Second-2*time.Millisecond || lag > 3*time.Second {
			t.Errorf("lag %v, %v after being held up for 3 s", lag, ok)
		}
		runUntil(start.Add(6 * time.Second))
		near("6 s", len(out.numbers), 6000)
	})
}

func TestNoRateNoLag(t *testing.T) {
	r := openReader(t, Sequence, seqParams, fresh(t, Sequence, seqParams))
	if _, ok := r.Lag(time.Now()); ok {
		t.Error("a reader without a rate has a lag")
	}
}

func TestZipfKeysAreInRangeAndTheSameEachTime(t *testing.T) {
	p := seqParams
	p.Keys, p.Skew = 50, 1.2
	var keys [2][]uint64
	for i := range keys {
		r := openReader(t, Sequence, p, fresh(t, Sequence, p))
		var out emitted
		if _, _, err := r.Next(&out, 20000, always); err != nil {
			t.Fatal(err)
		}
		keys[i] = out.keys
	}
	if !slices.Equal(keys[0], keys[1]) {
		t.Error("two runs differ")
	}
	count := make([]float64, p.Keys)
	for _, k := range keys[0] {
		if k >= p.Keys {
			t.Fatalf("key %d of %d", k, p.Keys)
		}
		count[k]++
	}
	sum := 0.0
	for i := range count {
		sum += math.Pow(float64(i+1), -p.Skew)
	}
	for i := range 5 {
		want := 20000 * math.Pow(float64(i+1), -p.Skew) / sum
		if math.Abs(count[i]-want) > 5*math.Sqrt(want) {
			t.Errorf("key %d came %v times, want about %v", i, count[i], want)
		}
	}
}

func TestSequenceRecordsHaveTheirSizeAndPattern(t *testing.T) {
	p := seqParams
	p.RecordSize = 5000
	r := openReader(t, Sequence, p, fresh(t, Sequence, p))
	var c checker
	if _, _, err := r.Next(&c, 100, always); err != nil {
		t.Fatal(err)
	}
	if c.n != 100 || c.bad != 0 || c.size != 5000 {
		t.Errorf("%d records of %d bytes, %d without their pattern", c.n, c.size, c.bad)
	}
}

type checker struct {
	emitted
	n, bad, size int
}

func (c *checker) Emit(r *record.Record) error {
	c.n++
	c.size = r.Size()
	if r.Flags&record.FlagPattern == 0 || !record.PatternOK(r) || r.Source != 2 || r.Time != int64(r.Number) || r.Value < 0 {
		c.bad++
	}
	return nil
}

type nowhere struct{}

func (nowhere) Emit(*record.Record) error { return nil }
func (nowhere) Watermark(int64) error     { return nil }
func (nowhere) Status(bool) error         { return nil }

func TestNextDoesNotAllocate(t *testing.T) {
	for _, p := range []Params{seqParams, {RecordSize: 1000, Keys: 100, Splits: 7, Skew: 1}, {RecordSize: 44, Keys: 1, Splits: 1, Rate: 1e12}} {
		r := openReader(t, Sequence, p, fresh(t, Sequence, p))
		var out operator.Output = nowhere{}
		if n := testing.AllocsPerRun(100, func() {
			if _, _, err := r.Next(out, 50, always); err != nil {
				t.Fatal(err)
			}
			r.Watermark()
		}); n != 0 {
			t.Errorf("%+v: %v allocations", p, n)
		}
	}
}

func TestBadParametersAndSplitsAreErrors(t *testing.T) {
	for _, c := range []struct {
		kind, params, want string
	}{
		{"sequense", `{}`, "there are lines and sequence"},
		{Sequence, `{`, "parameters of a source"},
		{Sequence, `{"RecordSize":43,"Keys":1,"Splits":1}`, "record size 43 is outside 44.."},
		{Sequence, `{"RecordSize":67108865,"Keys":1,"Splits":1}`, "record size"},
		{Sequence, `{"RecordSize":44,"Splits":1}`, "one key"},
		{Sequence, `{"RecordSize":44,"Keys":1}`, "one split"},
	} {
		if _, err := NewReader(c.kind, []byte(c.params), time.Now()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v", c.kind, c.params, err)
		}
	}
	r := openReader(t, Sequence, seqParams, nil)
	for _, b := range [][]byte{nil, make([]byte, 11), seqSplit{index: 4}.bytes()} {
		if err := r.AddSplits([][]byte{b}); err == nil {
			t.Errorf("split %x passed", b)
		}
	}
	if err := newLines(Params{}).AddSplits([][]byte{make([]byte, lineSplitHeader-1)}); err == nil {
		t.Error("a cut split of lines passed")
	}
}

// files writes files and returns their names.
func files(t *testing.T, contents ...string) (names []string) {
	t.Helper()
	dir := t.TempDir()
	for i, c := range contents {
		name := filepath.Join(dir, fmt.Sprintf("%02d.txt", i))
		if err := os.WriteFile(name, []byte(c), 0o644); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	exact := strings.Repeat("y", 64<<10) // fills the read buffer to the byte
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"plain", "a\nb\n", []string{"a", "b"}},
		{"CRLF", "a\r\nb\r\n", []string{"a", "b"}},
		{"CR within", "a\rb\n", []string{"a\rb"}},
		{"no newline at the end", "a\nb", []string{"a", "b"}},
		{"empty file", "", nil},
		{"empty lines", "\n\r\n\nx\n", []string{"", "", "", "x"}},
		{"longer than the buffer", "a\n" + long + "\nb\n", []string{"a", long, "b"}},
		{"long, no newline", long, []string{long}},
		{"as long as the buffer, no newline", exact, []string{exact}},
		{"CRLF across the buffer", exact[:len(exact)-1] + "\r\n" + "z\n", []string{exact[:len(exact)-1], "z"}},
	} {
		p := Params{Files: files(t, c.text)}
		r := openReader(t, Lines, p, fresh(t, Lines, p))
		r.NoMoreSplits()
		var out emitted
		if progress, _, err := r.Next(&out, 100, always); progress != End || err != nil {
			t.Errorf("%s: progress %d, %v", c.name, progress, err)
		}
		if !slices.Equal(out.lines, c.want) {
			t.Errorf("%s: %d lines, want %d", c.name, len(out.lines), len(c.want))
		}
		for i, n := range out.numbers { // the number is the place in the file
			if !strings.HasPrefix(c.text[n:], c.want[i]) || out.keys[i] != operator.HashText([]byte(c.want[i])) {
				t.Errorf("%s: line %d has number %d, key %x", c.name, i, n, out.keys[i])
			}
		}
		if pos, err := ReadLineSplit(r.Splits()[0]); err != nil || pos.Lines != len(c.want) || !pos.Done || pos.Path != p.Files[0] {
			t.Errorf("%s: position %+v, %v", c.name, pos, err)
		}
		if r.Watermark() != record.MaxWatermark {
			t.Errorf("%s: watermark %d at the end", c.name, r.Watermark())
		}
	}
}

func TestLinesGoOnAfterARestoreAnywhere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var contents, want []string
		for f := range rapid.IntRange(1, 4).Draw(rt, "files") {
			var b strings.Builder
			for i := range rapid.IntRange(0, 8).Draw(rt, "lines") {
				l := fmt.Sprintf("%d/%d%s", f, i, strings.Repeat("-", rapid.SampledFrom([]int{0, 5, 70 << 10}).Draw(rt, "length")))
				want = append(want, l)
				b.WriteString(l + rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end"))
			}
			contents = append(contents, b.String())
		}
		p := Params{Files: files(t, contents...)}
		var out emitted
		splits := deal(fresh(rt, Lines, p), rapid.IntRange(1, 3).Draw(rt, "parallelism"))
		for round := 0; ; round++ {
			old := make([][][]byte, len(splits))
			ended := true
			for i, s := range splits {
				r := openReader(rt, Lines, p, s)
				r.NoMoreSplits()
				n := rapid.IntRange(1, 6).Draw(rt, "n")
				if round > 3 {
					n = 1000
				}
				progress, _, err := r.Next(&out, n, always)
				if err != nil {
					rt.Fatal(err)
				}
				ended = ended && progress == End
				old[i] = r.Splits()
			}
			if ended {
				break
			}
			splits = state.Redistribute(old, state.Split, rapid.IntRange(1, 3).Draw(rt, "to"))
		}
		slices.Sort(out.lines)
		slices.Sort(want)
		if !slices.Equal(out.lines, want) {
			rt.Fatalf("%d lines, want %d", len(out.lines), len(want))
		}
		slices.Sort(out.numbers)
		if len(slices.Compact(out.numbers)) != len(want) {
			rt.Fatal("numbers are not unique")
		}
	})
}

// With loop, files are read over and over, each pass with numbers of its own,
// until Stop, which ends them where they stand.
func TestLinesLoop(t *testing.T) {
	p := Params{Files: files(t, "a\nb\n", "", "c"), Loop: true}
	r := openReader(t, Lines, p, fresh(t, Lines, p))
	r.NoMoreSplits()
	var out emitted
	for len(out.lines) < 6 { // restored in every place
		if progress, _, err := r.Next(&out, 1, always); progress != More || err != nil {
			t.Fatal(progress, err)
		}
		r = openReader(t, Lines, p, r.Splits())
		r.NoMoreSplits()
	}
	if _, _, err := r.Next(&out, 2, always); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.lines, ""); got != "abcabcab" {
		t.Error(got)
	}
	if r.Watermark() != record.MinWatermark {
		t.Errorf("watermark %d of what never ends", r.Watermark())
	}
	r.Stop()
	if progress, _, err := r.Next(&out, 100, always); progress != End || err != nil || len(out.lines) != 8 || r.Watermark() != record.MaxWatermark {
		t.Errorf("after Stop: progress %d, %v, %d lines", progress, err, len(out.lines))
	}
	slices.Sort(out.numbers)
	if len(slices.Compact(out.numbers)) != 8 {
		t.Error("numbers of passes collide")
	}
	total := 0
	for _, b := range r.Splits() {
		pos, err := ReadLineSplit(b)
		if err != nil {
			t.Fatal(err)
		}
		total += pos.Lines + pos.Pass*[]int{2, 0, 1}[pos.Index]
	}
	if total != 8 {
		t.Errorf("positions add up to %d lines", total)
	}
}

func TestStopLetsFilesThatDoNotLoopEnd(t *testing.T) {
	p := Params{Files: files(t, "a\nb\n")}
	r := openReader(t, Lines, p, fresh(t, Lines, p))
	r.NoMoreSplits()
	r.Stop()
	var out emitted
	if progress, _, err := r.Next(&out, 100, always); progress != End || err != nil || len(out.lines) != 2 {
		t.Error(progress, err, out.lines)
	}
}

func TestMissingFileIsAnErrorThatNamesIt(t *testing.T) {
	p := Params{Files: []string{"/no/such/file"}}
	r := openReader(t, Lines, p, fresh(t, Lines, p))
	if _, _, err := r.Next(nowhere{}, 1, always); err == nil || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "/no/such/file") {
		t.Error(err)
	}
}

func FuzzReadLineSplit(f *testing.F) {
	f.Add(lineSplit{index: 1, pass: 2, offset: 3, line: 4, done: true, path: "p"}.bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := readLineSplit(b)
		if err != nil {
			return
		}
		if got := s.bytes(); !bytes.Equal(got[:20], b[:20]) || !bytes.Equal(got[21:], b[21:]) {
			t.Fatalf("%x reads and writes as %x", b, got)
		}
	})
}
