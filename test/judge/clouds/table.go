package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// table is the table of all records, in Markdown, and below it the failures and skips with their reasons.
func table(records []Record) string {
	var b strings.Builder
	b.WriteString("| cloud | backend, compute | " + strings.Join(suiteNames(), " | ") + " |\n")
	b.WriteString("| --- | --- |" + strings.Repeat(" --- |", len(suiteNames())) + "\n")
	for _, r := range records {
		fmt.Fprintf(&b, "| %s | %s, %s |", r.title(), r.Backend, r.Compute)
		for _, name := range suiteNames() {
			fmt.Fprintf(&b, " %s |", r.cell(name))
		}
		b.WriteString("\n")
	}
	if notes := notes(records); notes != "" {
		b.WriteString("\n" + notes)
	}
	return b.String()
}

func suiteNames() []string {
	var names []string
	for _, s := range suites {
		if !slices.Contains(names, s.name) {
			names = append(names, s.name)
		}
	}
	return names
}

// title names a release with the versions that Debian has.
func (c Cloud) title() string {
	name := strings.ToUpper(c.Name[:1]) + c.Name[1:]
	if c.Name == "sid" {
		name = "Debian sid"
	}
	var parts []string
	for _, part := range []struct{ name, pkg string }{{"Keystone", "keystone"}, {"Cinder", "cinder-api"}, {"Nova", "nova-api"}} {
		if v := upstream(c.Packages[part.pkg]); v != "" {
			parts = append(parts, part.name+" "+v)
		}
	}
	return name + " (" + strings.Join(parts, ", ") + ")"
}

// upstream is the version of a Debian package without epoch and revision.
func upstream(version string) string {
	if _, after, found := strings.Cut(version, ":"); found {
		version = after
	}
	version, _, _ = cutLast(version, "-")
	return version
}

// where names a cloud in a note.
func (c Cloud) where() string { return strings.Join([]string{c.Name, c.Backend, c.Compute}, " ") }

func (r Record) cell(name string) string {
	s, ok := r.Suites[name]
	if !ok && name == "guests" && r.Compute != "libvirt" {
		return "no guests"
	}
	if !ok && r.Compute == "libvirt" && slices.Contains([]string{"conformance", theirs, "partial faults", "driver"}, name) {
		return "no disks here" // these mount file systems on the machine of the tests
	}
	if !ok {
		return "not run"
	}
	said := fmt.Sprintf("%d passed", s.Passed)
	if s.Specs != "" {
		said = s.Specs
	} else if len(s.Failed) > 0 {
		said += fmt.Sprintf(", %d failed", len(s.Failed))
	}
	if len(s.Skipped) > 0 {
		said += fmt.Sprintf(", %d skipped", len(s.Skipped))
	}
	if s.NotRun > 0 {
		said += fmt.Sprintf(", %d not run", s.NotRun)
	}
	return said
}

// notes lists every failed and every skipped test. The many specs that upstream fails have one line.
func notes(records []Record) string {
	var b strings.Builder
	for _, r := range records {
		for _, name := range suiteNames() {
			s := r.Suites[name]
			for _, test := range s.Failed {
				fmt.Fprintf(&b, "- %s, %s: `%s` failed\n", r.where(), name, test)
			}
			if n := len(s.FailedSpecs); n > 0 {
				fmt.Fprintf(&b, "- %s, %s: %d specs failed ([names and reasons](../../test/judge/clouds/runs/%s))\n", r.where(), name, n, r.file())
			}
			byReason := map[string][]string{}
			for test, reason := range s.Skipped {
				byReason[reason] = append(byReason[reason], test)
			}
			for _, reason := range slices.Sorted(maps.Keys(byReason)) {
				fmt.Fprintf(&b, "- %s, %s: %d skipped: %s\n", r.where(), name, len(byReason[reason]), reason)
			}
		}
	}
	return b.String()
}
