//go:build vm

package vm

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

// results collects the measurements of each test, for a file with a section for each test. A run of some tests replaces only their sections.
var results = struct {
	sync.Mutex
	sections map[string]*section
}{sections: map[string]*section{}}

type section struct {
	tables  []*table
	kernels map[string]bool // of the guests
}

type table struct {
	title, header string
	rows          []string
}

// record adds a row to the table of that title in the section of the test. Bars separate the cells of the header.
func record(t *testing.T, title, header string, cells ...any) {
	results.Lock()
	defer results.Unlock()
	s := sectionOf(t)
	i := slices.IndexFunc(s.tables, func(t *table) bool { return t.title == title })
	if i < 0 {
		i = len(s.tables)
		s.tables = append(s.tables, &table{title: title, header: header})
	}
	text := make([]string, len(cells))
	for n, c := range cells {
		text[n] = fmt.Sprint(c)
		if d, ok := c.(time.Duration); ok {
			text[n] = fmt.Sprintf("%d ms", d.Milliseconds())
		}
	}
	s.tables[i].rows = append(s.tables[i].rows, "| "+strings.Join(text, " | ")+" |")
}

// sectionOf is the section of a test. The caller has the lock.
func sectionOf(t *testing.T) *section {
	name, _, _ := strings.Cut(t.Name(), "/")
	if results.sections[name] == nil {
		results.sections[name] = &section{kernels: map[string]bool{}}
	}
	return results.sections[name]
}

// recordKernel records the kernel of a guest of the test.
func recordKernel(t *testing.T, release string) {
	results.Lock()
	defer results.Unlock()
	sectionOf(t).kernels[release] = true
}

// recordTest records the result of a test with its own guest.
func recordTest(t *testing.T, m guest.Machine) {
	began := time.Now()
	t.Cleanup(func() {
		outcome := "passed"
		if t.Failed() {
			outcome = "failed"
		}
		_, name, _ := strings.Cut(t.Name(), "/")
		record(t, "Outcome", "guest | test | outcome | seconds", m, strings.ReplaceAll(name, "_", " "), outcome, int(time.Since(began).Seconds()))
	})
}

const introduction = `# What the test guests showed

Written by ` + "`make test-vm`" + `. The processor is emulated (no KVM), each guest has one, and other work shared the machine: times, by the
guest's clock, are upper bounds; counts are exact.
`

// writeResults writes the sections of the tests that ran. A run of some tests keeps the other sections of the file.
func writeResults(name string) error {
	version, err := exec.Command("qemu-system-x86_64", "--version").Output()
	if err != nil {
		return err
	}
	qemu, _, _ := strings.Cut(string(version), "\n")
	texts := map[string]string{}
	if old, err := os.ReadFile(name); err == nil && flag.Lookup("test.run").Value.String() != "" {
		for _, text := range strings.Split(string(old), "\n## ")[1:] {
			title, _, _ := strings.Cut(text, "\n")
			texts[title] = strings.TrimSpace(text) + "\n"
		}
	}
	for title, s := range results.sections {
		texts[title] = fmt.Sprintf("%s\n\n%s, %s, Linux %s\n%s", title, time.Now().UTC().Format(time.DateOnly), qemu,
			strings.Join(slices.Sorted(maps.Keys(s.kernels)), ", "), s)
	}
	out := introduction + whatRuns()
	for _, title := range slices.Sorted(maps.Keys(texts)) {
		out += "\n## " + texts[title]
	}
	return os.WriteFile(name, []byte(out), 0o644)
}

// whatRuns lists which cases run on which kernels and machines, and why.
func whatRuns() string {
	var rows strings.Builder
	row := func(what, where, why string) { fmt.Fprintf(&rows, "| %s | %s | %s |\n", what, where, why) }
	for _, c := range cases {
		where, why := strings.Join(c.buses, ", ")+"; pc with every kernel; q35 with trixie, where virtio or NVMe", c.why
		if slices.Contains(plugged, c.name) {
			where = strings.Replace(where, "q35 with trixie", "q35 with every kernel", 1)
		}
		if c.why == "" {
			where, why = strings.Join(c.buses, ", ")+"; trixie, pc", "the driver's own work, the same on every kernel"
		}
		row(c.name, where, why)
	}
	row("SCSI controller without events", "every kernel, pc", "what a rescan renews")
	row("backend that hangs", "virtio on every kernel; SCSI on trixie", "which threads a signal ends, and how SCSI gives up")
	row("disks of iSCSI sessions", "every kernel, pc", "where sysfs shows the session")
	row("attach limits", "every machine on trixie; pc and q35 on every kernel", "which slots the kernel shows")
	row("SELinux, config drives, names that another volume got, times, many disks at once", "trixie; the machines in their tables", "the driver's own work")
	return "\nWhat runs on which kernel and bus:\n\n| case | where | because it depends on |\n| --- | --- | --- |\n" + rows.String()
}

func (s *section) String() string {
	var text strings.Builder
	for _, t := range s.tables {
		fmt.Fprintf(&text, "\n%s:\n\n| %s |\n|%s\n%s\n", t.title, t.header, strings.Repeat(" --- |", strings.Count(t.header, "|")+1), strings.Join(t.rows, "\n"))
	}
	return text.String()
}
