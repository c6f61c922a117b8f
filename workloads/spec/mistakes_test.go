package spec

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
)

// contract is the sample of the documentation with one change: OLD => NEW.
func contract(t *testing.T, change string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/contract.toml")
	if err != nil {
		t.Fatal(err)
	}
	old, replacement, ok := strings.Cut(change, " => ")
	if change != "" && (!ok || !strings.Contains(string(b), old)) {
		t.Fatalf("the sample has no %q", old)
	}
	return []byte(strings.Replace(string(b), old, replacement, 1))
}

func problemsOf(t *testing.T, text []byte) Problems {
	t.Helper()
	_, err := Parse("w.toml", "/dir", text, nil)
	ps, ok := errors.AsType[Problems](err)
	if err != nil && !ok {
		t.Fatal(err)
	}
	return ps
}

// TestOneMistakeOneProblem: a slip is told once, where it is, and not again in
// other words by every check that rests on it.
//
// Fails if any of the fields of decoder.wrong stays false.
func TestOneMistakeOneProblem(t *testing.T) {
	for _, change := range []string{
		`operator = "keyed-sum" => operator = "keyed-summ"`, `operator = "verify-sink" => operator = "verifysink"`, `operator = "sequence" => operator = "sequnce"`,
		`operator = "keyed-sum" => operator = 5`, `id = "slow" => id = 5`, `id = "slow" => id = ""`, `id = "out" => id = "slow"`, `to = "slow" => to = "slw"`, `from = "slow" => from = 1`, `[[workload.vertex]] => [[workload.vertexx]]`,
		`parallelism = { slow = 6 } => parallelism = 6`, `parallelism = { slow = 6 } => parallelism = { slw = 6 }`, `do = "rescale" => do = "rescl"`, `do = "rescale" => do = 5`, `wait = { first => wait = { frst`,
		`wait = { checkpoints = 1, in-flight = "64 MiB", timeout = "60s" } => wait = 5`, `schema = 1 => schema = "1"`, `interval" = "2 s" => interval" = "2 x"`, `unaligned.enabled" = true => unaligned.enabled" = "yes"`,
		`partitioner = "hash" => partitioner = "hsh"`, `workers = 2 => workers = "2"`, `network-memory = "512 MiB" => network-memory = 512`, `buffers-per-channel = 128            => buffers-per-channel = "a"`,
		`mode = "streaming" => mode = "stream"`, `rate = "50000/s" => rate = 5`, `params = { cost => params = 5 # {`, `max-parallelism = 128 => max-parallelism = 0`, `repeats = 8 => repeats = nan`,
		"parallelism = 4\nmax => parallelism = \"4\"\nmax", `target = "embedded" => target = true`,
	} {
		ps := problemsOf(t, contract(t, change))
		if len(ps) != 1 || ps[0].File != "w.toml" || ps[0].Line == 0 {
			t.Errorf("%s:\n%v", change, ps)
		}
	}
}

// TestProblemsHaveAFile puts every type of value at every key. Whatever comes
// of it, there is no panic, and every problem has its place.
//
// Fails if section.problem knows no file where the table is absent, or a table
// of the wrong type is told again by what it lacks.
func TestProblemsHaveAFile(t *testing.T) {
	text := string(contract(t, ""))
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		key, _, ok := strings.Cut(line, " = ")
		if !ok || strings.HasPrefix(strings.TrimSpace(line), "#") {
			continue
		}
		for _, v := range []string{`5`, `-1`, `1.5`, `nan`, `-inf`, `""`, `"x"`, `true`, `[]`, `[1]`, `{}`, `{ a = 1 }`, `[{}]`, `2026-01-02`} {
			changed := append(append(append([]string{}, lines[:i]...), key+" = "+v), lines[i+1:]...)
			for _, p := range problemsOf(t, []byte(strings.Join(changed, "\n"))) {
				if p.File != "w.toml" || p.Line == 0 || p.Column == 0 || p.Message == "" {
					t.Errorf("%s = %s: %+v", key, v, p)
				}
			}
		}
	}
	r := newReporter(&source{name: "w.toml"})
	r.section(nil, "absent").fail("key", "is missing", "")
	if r.problems[0].File != "w.toml" {
		t.Errorf("a key of an absent table: %+v", r.problems[0])
	}
	for _, table := range []string{"run", "cluster", "options", "matrix", "workload", "scenario", "thresholds"} {
		for _, v := range []string{`5`, `"x"`, `[]`, `[[]]`} {
			ps := problemsOf(t, []byte("schema = 1\nname = \"w\"\n"+table+" = "+v+"\n"))
			for _, p := range ps {
				if p.File != "w.toml" || p.Line == 0 {
					t.Errorf("%s = %s: %+v", table, v, p)
				}
			}
			if len(ps) == 0 || table == "workload" && len(ps) != 1 {
				t.Errorf("%s = %s: %v", table, v, ps)
			}
		}
	}
}

// TestWrongAxisHidesNoOther: values of a good axis are checked although
// another axis is wrong.
//
// Fails if the matrix is given up at the first wrong axis.
func TestWrongAxisHidesNoOther(t *testing.T) {
	ps := problemsOf(t, contract(t, `recover-output-on-downstream.enabled" = [false, true] => recover-output-on-downstream.enabled" = [false, 1]
"workload.parallelism" = [2, "x"]
"cluster.workers" = [0]
"workload.vertex.slow.params.cost" = ["1 ms", "1 parsec"]`))
	text := ps.Error()
	for _, want := range []string{"must be true or false, not 1", `workload.parallelism = "x"`, "cluster.workers = 0", `unknown unit "parsec"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(ps) != 4 {
		t.Errorf("%d problems:\n%s", len(ps), text)
	}
}

// TestBinaryFile: what is no text is told without writing its bytes to the
// terminal.
//
// Fails if the source line or the message is passed on as it is.
func TestBinaryFile(t *testing.T) {
	for _, text := range []string{"\x7fELF\x02\x01\x01\x00\x00", "schema = 1\nname = \x1b[31m\"red\"\n", "\xff\xfe\x00s", "name = \"\x00\"", "a\x07b = 1", "\x1b]0;title\x07 = 1"} {
		ps := problemsOf(t, []byte(text))
		if len(ps) == 0 {
			t.Errorf("%q: no problem", text)
		}
		for i := range ps {
			for _, r := range ps[i].Text() {
				if r != '\n' && r != '\t' && !unicode.IsPrint(r) {
					t.Errorf("%q: %q", text, ps[i].Text())
					break
				}
			}
		}
	}
}

// TestCopiesKeepTheirIdentity: jobs whose proof could not tell copies from
// duplicates are refused, others are not.
//
// Fails if checkIdentities looks in one direction only.
func TestCopiesKeepTheirIdentity(t *testing.T) {
	job := func(chain ...string) string {
		var b strings.Builder
		b.WriteString("schema = 1\nname = \"w\"\n[workload]\n")
		for i, op := range chain {
			fmt.Fprintf(&b, "[[workload.vertex]]\nid = \"v%d\"\n%s\n", i, op)
		}
		for i := 1; i < len(chain); i++ {
			part := "rebalance"
			if strings.Contains(chain[i], "window-sum") || strings.Contains(chain[i], "keyed-sum") {
				part = "hash"
			}
			fmt.Fprintf(&b, "[[workload.edge]]\nfrom = \"v%d\"\nto = \"v%d\"\npartitioner = %q\n", i-1, i, part)
		}
		return b.String()
	}
	const (
		source = `operator = "sequence"`
		sink   = `operator = "verify-sink"`
		window = `operator = "window-sum"`
		copies = `operator = "flat-map"`
		pass   = `operator = "map"`
	)
	fan := func(n int) string { return fmt.Sprintf("operator = \"flat-map\"\nparams = { fan-out = %d }", n) }
	joined := func(end string) string {
		return job(source, copies, pass, sink) + "[[workload.vertex]]\nid = \"other\"\n" + source + "\n[[workload.vertex]]\nid = \"pairs\"\noperator = \"join\"\n[[workload.vertex]]\nid = \"end\"\n" + end +
			"\n[[workload.edge]]\nfrom = \"v2\"\nto = \"pairs\"\npartitioner = \"hash\"\n[[workload.edge]]\nfrom = \"other\"\nto = \"pairs\"\npartitioner = \"hash\"\n[[workload.edge]]\nfrom = \"pairs\"\nto = \"end\"\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"in front of a window", job(source, copies, window, sink), ""},
		{"behind a window", job(source, window, copies, sink), "copies what the window-sum v1 emits"},
		{"far behind a window", job(source, window, pass, copies, sink), "copies what the window-sum v1 emits"},
		{"one copy is no copy", job(source, window, fan(1), sink), ""},
		{"in front of a join", joined(sink), "of which the join pairs takes one"},
		{"too many", job(source, fan(1<<20), fan(1<<13), sink), "more copies of a record"},
		{"many", job(source, fan(1<<10), fan(1<<10), sink), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			ps := problemsOf(t, []byte(c.text))
			if c.want == "" && len(ps) > 0 || c.want != "" && (len(ps) != 1 || !strings.Contains(ps[0].Message, c.want) || ps[0].Hint == "") {
				t.Errorf("%v\nwant %q", ps, c.want)
			}
		})
	}
}

// TestHostWarnings: what this host would not let the job do is a warning.
//
// Fails if the estimate leaves out the subtasks.
func TestHostWarnings(t *testing.T) {
	before := openFileLimit
	defer func() { openFileLimit = before }()
	for _, c := range []struct {
		limit uint64
		known bool
		warns bool
	}{{1 << 20, true, false}, {100, true, true}, {0, false, false}} {
		openFileLimit = func() (uint64, bool) { return c.limit, c.known }
		f, err := Parse("w.toml", "/dir", contract(t, ""), nil)
		if err != nil {
			t.Fatal(err)
		}
		warned := len(f.Warnings) == 1 && strings.Contains(f.Warnings[0].Message, "but this system allows a process 100") && f.Warnings[0].Hint == "ulimit -n 260"
		if warned != c.warns || !c.warns && len(f.Warnings) > 0 {
			t.Errorf("%+v: %v", c, f.Warnings)
		}
	}
	openFileLimit = before
	for _, c := range []struct {
		path  string
		warns bool
	}{{t.TempDir(), false}, {"/no/such/checkpoint", true}, {"s3://bucket/chk-1", false}} {
		f, err := Parse("w.toml", "/dir", contract(t, `"execution.checkpointing.interval" = "2 s" => "execution.checkpointing.interval" = "2 s"
"execution.state-recovery.path" = "`+c.path+`"`), nil)
		if err != nil {
			t.Fatal(err)
		}
		if warned := strings.Contains(Problems(f.Warnings).Error(), "there is no such checkpoint"); warned != c.warns {
			t.Errorf("%s: %v", c.path, f.Warnings)
		}
	}
}

// TestB27DurationsAreBounded: a duration without end once overflowed, and the
// run never ended.
//
// Fails if ParseDuration lets a number pass that does not fit.
func TestB27DurationsAreBounded(t *testing.T) {
	for v, want := range map[string]string{
		"inf": "is no duration", "300 years": "unknown unit", "9e99 s": "unknown unit", "99999999999999999999 h": "is too long", "3000000 d": "is too long", "-1 s": "is no duration", "0 s": "must be at least 1s",
	} {
		if ps := problemsOf(t, contract(t, `trial-timeout = "3m" => trial-timeout = "`+v+`"`)); len(ps) != 1 || !strings.Contains(ps[0].Message, want) {
			t.Errorf("%s: %v, want %q", v, ps, want)
		}
	}
	f, err := Parse("w.toml", "/dir", contract(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Resolve("R=true,D=true")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range w.Steps {
		if s.Wait != nil && (s.Wait.Timeout <= 0 || s.Wait.Timeout > 24*time.Hour) {
			t.Errorf("the step %s waits for %s", s.Name, s.Wait.Timeout)
		}
	}
}

// TestB34DuringRecoveryNeedsUnaligned: R and D without U hung until the
// checkpoint expired. Such a set never runs; in a matrix it is left out with
// the reason.
//
// Fails if D no longer requires U.
func TestB34DuringRecoveryNeedsUnaligned(t *testing.T) {
	const unaligned = `"execution.checkpointing.unaligned.enabled" = true`
	f, err := Parse("w.toml", "/dir", contract(t, unaligned+" => "+strings.Replace(unaligned, "true", "false", 1)), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range f.Cells() {
		if strings.Contains(c.ID, "D=true") {
			t.Errorf("%s runs", c.ID)
		}
	}
	if left := f.LeftOut(); len(left) != 2 || !strings.Contains(left[1].Reason, "execution.checkpointing.unaligned.enabled") {
		t.Errorf("%+v", left)
	}
}

// TestB43NumbersWithoutUnits: 5 once was read as five nanoseconds, and NaN
// passed every check.
//
// Fails if section.text takes numbers, or number lets NaN pass.
func TestB43NumbersWithoutUnits(t *testing.T) {
	for _, c := range []struct{ change, want string }{
		{`trial-timeout = "3m" => trial-timeout = 5`, "a duration needs a unit"},
		{`buffer-size = "32 KiB" => buffer-size = 32768`, "a size needs a unit"},
		{`interval" = "2 s" => interval" = 2`, "a duration needs a unit"},
		{`rate = "50000/s", => rate = 50000,`, "a rate needs a unit"},
		{`keys = 1000, => keys = 1000, key-skew = nan,`, "key-skew = NaN: must be a finite number"},
		{`keys = 1000, => keys = 1000, key-skew = inf,`, "must be a finite number"},
	} {
		if ps := problemsOf(t, contract(t, c.change)); len(ps) != 1 || !strings.Contains(ps[0].Error(), c.want) {
			t.Errorf("%s: %v", c.change, ps)
		}
	}
}

// TestB22LimitOnNothing: a limit on a metric that does not exist is found when
// the file is read, not passed over.
//
// Fails if thresholds does not look the metric up.
func TestB22LimitOnNothing(t *testing.T) {
	for _, text := range []string{`median(time_to_first_chekpoint_s) < 5 s`, `median(no.such_thing) < 5 s`, `median() < 5 s`, `5 s`, `median(time_to_running_s) = 5 s`} {
		ps := problemsOf(t, append(contract(t, ""), "\n[thresholds]\n\"*\" = ["+fmt.Sprintf("%q", text)+"]\n"...))
		if len(ps) != 1 || ps[0].Line == 0 || !strings.Contains(ps[0].Value, text) {
			t.Errorf("%s: %v", text, ps)
		}
	}
}

// No system takes a zero byte in a name or a path; it is told at its place before
// anything is opened.
//
// Fails if strings in lists, or options, are not looked at.
func TestZeroBytes(t *testing.T) {
	for change, key := range map[string]string{
		`description = "Rescale 4 to 6 with 64 MiB in flight" => description = "a\u0000b"`: "description",
		`"execution.checkpointing.interval" = "2 s" => "execution.checkpointing.interval" = "2 s"
"execution.state-recovery.path" = "/a\u0000b"`: "options.\"execution.state-recovery.path\"",
		`operator = "sequence" => operator = "lines"
params = { paths = ["/x", "/a\u0000b"] }`: "workload.vertex.numbers.params.paths",
		`storage = "" => storage = "file:///a\u0000b"`: "cluster.storage",
	} {
		text := problemsOf(t, contract(t, change)).Error()
		if !strings.Contains(text, key+` = `) || !strings.Contains(text, "holds a zero byte") {
			t.Errorf("%s: %s", key, text)
		}
	}
}
