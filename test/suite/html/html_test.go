// Package html opens the pages of inspect and plan in headless Chromium: no request, no message of the console, contrast, narrow screens, paper.
package html

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

//go:embed measure.js
var measure string

var (
	generator   = flag.String("generator", "", "the program cinder-csi-generator")
	screenshots = flag.String("screenshots", "", "write screenshots to this directory")
)

// browser is one tab and what happened in it.
type browser struct {
	context.Context
	lock     sync.Mutex
	problems []string
}

func (b *browser) problem(format string, args ...any) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	options := chromedp.DefaultExecAllocatorOptions[:]
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses to run as root with its sandbox
	}
	allocator, stopBrowser := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, stop := chromedp.NewContext(allocator)
	t.Cleanup(func() { stop(); stopBrowser() })
	b := &browser{Context: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, "file:") && !strings.HasPrefix(e.Request.URL, "data:") {
				b.problem("request to %s", e.Request.URL)
			}
		case *runtime.EventConsoleAPICalled:
			b.problem("console: %s", e.Type)
		case *runtime.EventExceptionThrown:
			b.problem("exception: %s", e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			b.problem("log: %s", e.Entry.Text)
		}
	})
	return b
}

// run runs actions, and fails if the tab then has a problem.
func (b *browser) run(t *testing.T, actions ...chromedp.Action) {
	t.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		t.Fatal(err)
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	for _, p := range b.problems {
		t.Error(p)
	}
}

// pages are what the program prints, as URLs of files.
func pages(t *testing.T) map[string]string {
	t.Helper()
	if *generator == "" {
		t.Fatal("give the program with -generator; make test-html does")
	}
	inventory := []string{"--inventory", "testdata/inventory.yaml", "--config", "testdata/distribution.yaml"}
	all := map[string]string{}
	for name, args := range map[string][]string{
		"plan":      append([]string{"plan", "--target", "vanilla", "-o", "html"}, inventory...),
		"inspect":   append([]string{"inspect", "-o", "html"}, inventory...),
		"simulated": {"plan", "--target", "hypershift", "--simulated", "-o", "html"},
		"many":      {"plan", "--target", "vanilla", "-o", "html", "--inventory", manyTypes(t)},
	} {
		content, err := exec.CommandContext(t.Context(), *generator, args...).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		path := filepath.Join(t.TempDir(), name+".html")
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		all[name] = (&url.URL{Scheme: "file", Path: path}).String()
	}
	return all
}

// manyTypes is the inventory of a cloud with 2,000 volume types and 12 zones.
func manyTypes(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Inventory\ncloud: {authURL: 'https://c.example/v3', region: r, projectID: p}\n")
	b.WriteString("services: {state: known, value: {block-storage: {present: true, minMicroversion: '3.0', maxMicroversion: '3.70'}, compute: {present: true, minMicroversion: '2.1', maxMicroversion: '2.95'}}}\n")
	b.WriteString("zones:\n")
	for _, side := range []string{"compute", "volume"} {
		fmt.Fprintf(&b, "  %s:\n    state: known\n    value:\n", side)
		for i := range 12 {
			fmt.Fprintf(&b, "      - {name: availability-zone-%02d, available: true}\n", i)
		}
	}
	b.WriteString("volumeTypes:\n  state: known\n  value:\n")
	for i := range 2000 {
		fmt.Fprintf(&b, "    - {id: id-%d, name: type-%04d, public: true, multiattach: false, replication: false, encryption: {state: known}}\n", i, i)
	}
	b.WriteString("defaultVolumeType: {state: known, value: type-0001}\nlimits: {state: denied}\nquota: {state: denied, reason: a policy}\ngroupTypes: {state: unsupported}\n")
	path := filepath.Join(t.TempDir(), "many.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// screen is a size of the window, in CSS pixels, with a preference of its user.
type screen struct {
	name          string
	width, height int64
	scheme        string
}

var screens = []screen{{"desk", 1200, 900, "light"}, {"desk-dark", 1200, 900, "dark"}, {"phone", 360, 740, "light"}, {"phone-dark", 360, 740, "dark"}, {"wide", 2560, 1300, "light"}}

func (s screen) set() chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		media := emulation.SetEmulatedMedia().WithMedia("screen").WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.scheme}})
		if err := media.Do(ctx); err != nil {
			return err
		}
		return emulation.SetDeviceMetricsOverride(s.width, s.height, 1, s.width < 500).Do(ctx)
	})
}

func TestPagesInABrowser(t *testing.T) {
	for name, address := range pages(t) {
		for _, s := range screens {
			t.Run(name+"/"+s.name, func(t *testing.T) {
				b := newBrowser(t)
				var found findings
				b.run(t, log.Enable(), network.Enable(), runtime.Enable(), s.set(), chromedp.Navigate(address), chromedp.Evaluate(measure, &found))
				found.check(t, s)
				if name == "plan" && *screenshots != "" {
					b.run(t, shots(s)...)
				}
			})
		}
	}
}

// findings are what the script in measure.js reports about a page.
type findings struct {
	Scroll, Width int      // of the document, in pixels
	Contrast      []string // texts with too little of it
	Checked       int      // texts whose contrast was computed
	Wide          []string // elements that reach beyond the window
	Unnamed       []string // tables, links, images without a name
	Headings      []string // that skip a level
	Targets       int      // links to sections that are not there
	Small         []string // texts of less than 11 pixels
}

func (f findings) check(t *testing.T, s screen) {
	t.Helper()
	if f.Scroll > f.Width {
		t.Errorf("the page scrolls sideways: %d pixels in a window of %d: %v", f.Scroll, f.Width, f.Wide)
	}
	if f.Checked < 20 {
		t.Errorf("want the contrast of all texts, got that of %d", f.Checked)
	}
	if f.Targets > 0 {
		t.Errorf("%d links to sections lead nowhere", f.Targets)
	}
	for what, list := range map[string][]string{"contrast is below WCAG AA": f.Contrast, "element without a name": f.Unnamed, "heading skips a level": f.Headings, "text is too small": f.Small} {
		for _, item := range list {
			t.Errorf("%s: %s: %s", s.name, what, item)
		}
	}
}

func TestAPageIsReadableOnPaper(t *testing.T) {
	for name, address := range pages(t) {
		if name == "many" {
			continue // 200 pages say nothing more
		}
		t.Run(name, func(t *testing.T) {
			b := newBrowser(t)
			var found findings
			var paper []byte
			var head string // of a table: a phone has none, and paper is nearly as narrow
			// A4 in CSS pixels, without the margins of the page.
			printed := screen{"paper", 688, 1017, "light"}
			b.run(t, log.Enable(), network.Enable(), runtime.Enable(), printed.set(), emulation.SetEmulatedMedia().WithMedia("print"), chromedp.Navigate(address),
				chromedp.Evaluate(measure, &found), chromedp.Evaluate("getComputedStyle(document.querySelector('thead')).display", &head),
				chromedp.ActionFunc(func(ctx context.Context) (err error) {
					paper, _, err = page.PrintToPDF().WithPreferCSSPageSize(true).WithPrintBackground(false).Do(ctx)
					return err
				}))
			found.check(t, printed)
			if head != "table-header-group" {
				t.Errorf("want tables with heads, got display %s", head)
			}
			if count := strings.Count(string(paper), "/Type /Page\n"); count < 1 || count > 12 {
				t.Errorf("want a few sheets of paper, got %d", count)
			}
		})
	}
}

// shots write the screenshots of the documentation.
func shots(s screen) []chromedp.Action {
	var screenshot []byte
	// What the page is scrolled to: each screenshot shows another part.
	target := map[string]string{"desk": "header", "desk-dark": "#quotas", "phone": "#types"}[s.name]
	if target == "" {
		return nil
	}
	area := screen{s.name, s.width, 1000, s.scheme}
	scroll := fmt.Sprintf("document.documentElement.style.scrollBehavior = 'auto'; document.querySelector(%q).scrollIntoView()", target)
	return []chromedp.Action{area.set(), chromedp.Evaluate(scroll, nil), chromedp.CaptureScreenshot(&screenshot), chromedp.ActionFunc(func(context.Context) error {
		if len(screenshot) > 150_000 {
			return fmt.Errorf("the screenshot %s has %d bytes, which is too many for documentation", s.name, len(screenshot))
		}
		return os.WriteFile(filepath.Join(*screenshots, "plan-"+s.name+".png"), screenshot, 0o644)
	})}
}
