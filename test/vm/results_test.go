//go:build vm

package vm

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// results gathers what was measured, as tables for a file.
var results struct {
	sync.Mutex
	tables []*table
	kernel string
}

type table struct {
	title, header string
	rows          []string
}

// record adds a row to the table of that title and header, cells separated by bars.
func record(title, header string, cells ...any) {
	results.Lock()
	defer results.Unlock()
	i := slices.IndexFunc(results.tables, func(t *table) bool { return t.title == title })
	if i < 0 {
		i = len(results.tables)
		results.tables = append(results.tables, &table{title: title, header: header})
	}
	text := make([]string, len(cells))
	for n, c := range cells {
		text[n] = fmt.Sprint(c)
		if d, ok := c.(time.Duration); ok {
			text[n] = fmt.Sprintf("%d ms", d.Milliseconds())
		}
	}
	results.tables[i].rows = append(results.tables[i].rows, "| "+strings.Join(text, " | ")+" |")
}

// recordTest notes how a test ended.
func recordTest(t *testing.T) {
	began := time.Now()
	t.Cleanup(func() {
		outcome := "passed"
		if t.Failed() {
			outcome = "failed"
		}
		record("Tests", "test | outcome | seconds", strings.ReplaceAll(t.Name(), "_", " "), outcome, int(time.Since(began).Seconds()))
	})
}

func writeResults(name string) error {
	version, err := exec.Command("qemu-system-x86_64", "--version").Output()
	if err != nil {
		return err
	}
	qemu, _, _ := strings.Cut(string(version), "\n")
	var text strings.Builder
	fmt.Fprintf(&text, "# What the test guest showed\n\nWritten by `make test-vm` on %s: %s, emulated (no KVM), one processor; guest's kernel %s.\n"+
		"Times are by the guest's clock, on a machine that other work shares: upper bounds.\n", time.Now().UTC().Format(time.DateOnly), qemu, results.kernel)
	for _, t := range results.tables {
		fmt.Fprintf(&text, "\n## %s\n\n| %s |\n|%s\n%s\n", t.title, t.header, strings.Repeat(" --- |", strings.Count(t.header, "|")+1), strings.Join(t.rows, "\n"))
	}
	return os.WriteFile(name, []byte(text.String()), 0o644)
}
