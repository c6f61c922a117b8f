package page

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"benchrun/harness/result"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience ends every wait for the browser.
const patience = 2 * time.Minute

// chromium finds the browser, or skips the test with the reason.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}
	if name := os.Getenv("CHROMIUM"); name != "" {
		names = []string{name}
	}
	for _, n := range names {
		if path, err := exec.LookPath(n); err == nil {
			return path
		}
	}
	t.Skip("no browser: there is no Chromium on the PATH (scripts/browser installs one; CHROMIUM names another)")
	return ""
}

// tab is a page of a real browser, with what it complained about.
type tab struct {
	context.Context
	mu         sync.Mutex
	complaints []string
}

func (b *tab) complain(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, fmt.Sprintf(format, args...))
}

// taken are the complaints since the last call.
func (b *tab) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.complaints
	b.complaints = nil
	return out
}

// browse starts a browser without a network.
func browse(t *testing.T) *tab {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience)}
	for _, flag := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-dev-shm-usage", "disable-extensions"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	options = append(options, chromedp.Flag("proxy-server", "127.0.0.1:1")) // nobody listens there
	limited, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	allocator, stop := chromedp.NewExecAllocator(limited, options...)
	t.Cleanup(stop)
	quiet := func(string, ...any) {} // of the protocol; what the page says comes as events
	ctx, leave := chromedp.NewContext(allocator, chromedp.WithErrorf(quiet), chromedp.WithLogf(quiet))
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("closing the browser: %v", err)
		}
		leave()
	})
	b := &tab{Context: ctx}
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
				b.complain("console: %s", e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			b.complain("exception: %s", e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			b.complain("console: %s", e.Type)
		case *network.EventRequestWillBeSent:
			if u := e.Request.URL; !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") {
				b.complain("asks the network for %.80s", u)
			}
		case *network.EventLoadingFailed:
			b.complain("does not load: %s", e.ErrorText)
		}
	})
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, cdp.Empty{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	}
	if err != nil {
		t.Fatalf("the browser does not start: %v", err)
	}
	return b
}

// open shows a file from disk in a colour scheme and a width.
func (b *tab) open(t *testing.T, path, scheme string, width int64) {
	t.Helper()
	u := url.URL{Scheme: "file", Path: path}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	_, err := chromedp.Call(b, emulation.SetEmulatedMedia, media)
	if err == nil {
		err = chromedp.Do(b, chromedp.EmulateViewport(width, 900), chromedp.Navigate(u.String()), chromedp.WaitReady(chromedp.CSS("main")))
	}
	if err != nil {
		t.Fatalf("%s: %v", filepath.Base(path), err)
	}
}

// ask runs a function of the checks and decodes what it returns.
func (b *tab) ask(t *testing.T, expression string, out any) {
	t.Helper()
	text, err := chromedp.Run(b, chromedp.Evaluate[string]("JSON.stringify((() => { "+checks+" return "+expression+"; })())"))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("%s: %v in %q", expression, err, text)
	}
}

// library are rendered pages of all kinds.
func library(t *testing.T) map[string]string {
	t.Helper()
	f := standard()
	f.blocks, f.steps = 6, []string{"up", "down"}
	f.cells = []string{"R=false,parallelism=4", "R=true,parallelism=4", "R=false,parallelism=8", "R=true,parallelism=8"}
	f.outcome = func(cell string, block int) result.Outcome {
		switch {
		case cell == "R=true,parallelism=8":
			return result.Timeout
		case cell == "R=true,parallelism=4" && block == 2:
			return result.Failed
		}
		return result.OK
	}
	f.others = 2.5
	f.mangle = func(r *result.Run) {
		r.Workloads[0].Inert = [][]string{{"R=false,parallelism=4", "R=false,parallelism=8"}}
		r.Workloads[0].Thresholds = map[string][]string{"*": {"median(time_to_first_checkpoint_s) < 1 s"}}
	}
	run, _ := render(t, f)
	if err := RenderDecision(run, slowed()); err != nil {
		t.Fatal(err)
	}
	long := standard()
	long.blocks, long.workload = 6, "a-workload-whose-name-goes-on-for-longer-than-anybody-would-like-to-read-it"
	long.cells = nil
	for i := range 10 {
		long.cells = append(long.cells, fmt.Sprintf("R=%v,D=%v,buffers-per-channel=%d,execution.checkpointing.aligned-checkpoint-timeout=%ds,path=<b>%%2Fa%%2Fvery%%2Flong%%2Fpath%%2Fwithout%%2Fany%%2Fspace%%2Fin%%2Fit", i%2 == 0, i%3 == 0, i, i))
	}
	names, _ := render(t, long)
	above := t.TempDir()
	if err := os.Rename(run, filepath.Join(above, "run")); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(above, "broken")
	if err := os.Mkdir(broken, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(broken, "run.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := RenderTrend(above, tenNights()); err != nil {
		t.Fatal(err)
	}
	if err := RenderIndex(above); err != nil {
		t.Fatal(err)
	}
	return map[string]string{
		"report": filepath.Join(above, "run", "report.html"), "gate": filepath.Join(above, "run", "gate.html"),
		"trend": filepath.Join(above, "trend.html"), "index": filepath.Join(above, "index.html"), "long names": filepath.Join(names, "report.html"),
	}
}

// TestBrowser opens the pages in a real browser.
func TestBrowser(t *testing.T) {
	b := browse(t)
	pages := library(t)
	t.Run("pages", func(t *testing.T) { browsePages(t, b, pages) })
	t.Run("keyboard", func(t *testing.T) { browseKeyboard(t, b, pages) })
	t.Run("pictures", func(t *testing.T) { browsePictures(t, b, pages) })
}

// browsePages shows every kind of page, light and dark, wide and narrow, and
// holds it to what readers need. Fails if, for instance, --dim is #999999, a
// table lacks its scroll box, an SVG its description, or the skip link is gone.
func browsePages(t *testing.T, b *tab, pages map[string]string) {
	for _, name := range []string{"report", "gate", "trend", "index", "long names"} {
		grounds := map[string]string{}
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1280, 390} {
				b.open(t, pages[name], scheme, width)
				var problems []string
				b.ask(t, "problems()", &problems)
				for _, p := range append(problems, b.taken()...) {
					t.Errorf("%s, %s, %d px: %s", name, scheme, width, p)
				}
			}
			var ground string
			b.ask(t, "getComputedStyle(document.body).backgroundColor", &ground)
			grounds[scheme] = ground
		}
		if grounds["light"] == grounds["dark"] {
			t.Errorf("%s is as bright in the dark as in the light: %s", name, grounds["dark"])
		}
	}
}

// browseKeyboard walks in with the keyboard: the first stop is the skip
// link, it shows, and it leads past the head of the page.
func browseKeyboard(t *testing.T, b *tab, pages map[string]string) {
	b.open(t, pages["report"], "light", 1280)
	if err := chromedp.Do(b, chromedp.KeyEvent(kb.Tab)); err != nil {
		t.Fatal(err)
	}
	var first struct {
		Class string
		Left  float64
	}
	b.ask(t, "({Class: document.activeElement.className, Left: document.activeElement.getBoundingClientRect().left})", &first)
	if first.Class != "skip" || first.Left < 0 {
		t.Errorf("the first stop is %q at %v px", first.Class, first.Left)
	}
	if err := chromedp.Do(b, chromedp.KeyEvent(kb.Enter)); err != nil {
		t.Fatal(err)
	}
	var hash string
	b.ask(t, "location.hash", &hash)
	if hash != "#main" {
		t.Errorf("the skip link leads to %q", hash)
	}
}

// browsePictures decodes every PNG in the browser.
func browsePictures(t *testing.T, b *tab, pages map[string]string) {
	var body strings.Builder
	n := 0
	for _, page := range []string{pages["report"], pages["trend"]} {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(page), "plots", "*.png"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			n++
			u := url.URL{Scheme: "file", Path: f}
			fmt.Fprintf(&body, `<img alt="%s" src="%s">`, html.EscapeString(filepath.Base(f)), html.EscapeString(u.String()))
		}
	}
	if n < 10 {
		t.Fatalf("only %d pictures", n)
	}
	path := filepath.Join(filepath.Dir(pages["index"]), "pictures.html")
	if err := os.WriteFile(path, []byte(`<!DOCTYPE html><html lang="en"><title>pictures</title><main>`+body.String()+`</main>`), 0o666); err != nil {
		t.Fatal(err)
	}
	b.open(t, path, "light", 1280)
	var broken []string
	b.ask(t, "[...document.images].filter(i => !i.complete || i.naturalWidth < 800 || i.naturalHeight < 100).map(i => i.alt)", &broken)
	for _, p := range append(broken, b.taken()...) {
		t.Errorf("picture: %s", p)
	}
}
