package image

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestAScriptIsEmulatedByTheShellOfTheImage(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, content := range map[string]string{"script": "#!/bin/sh -f\n", "program": "\x7fELF"} {
		testfile.Write(t, filepath.Join(root, name), content, 0o755)
	}
	for name, want := range map[string][]string{
		"/script":  {"/emulator", "/usr/bin/sh", "/script", "-a"},
		"/program": {"/emulator", "/program", "-a"},
	} {
		if diff := cmp.Diff(want, emulate(root, []string{name, "-a"})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The emulator of this test cannot run, so a command that is run fails.
func TestOnlyCommandsThatStartNoOtherProgramAreEmulated(t *testing.T) {
	t.Parallel()
	m := Image{Architecture: "arm64", probes: []probeCommand{{command: "fsck -t ext4", starts: true}}}
	var report bytes.Buffer
	if err := m.Probe(t.Context(), []byte("not a program"), &report); err != nil {
		t.Errorf("want the command left out, got %v", err)
	}
	if !strings.Contains(report.String(), "arm64: fsck -t ext4: not run") {
		t.Errorf("want a line that says so, got %q", report.String())
	}
	m.probes = []probeCommand{{command: "fsck --version"}}
	if err := m.Probe(t.Context(), []byte("not a program"), &report); err == nil {
		t.Error("want an error of the emulator, got none")
	}
}

func TestAnEmulatorForAnUnknownArchitectureIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Emulator(t.Context(), Debian{Dir: t.TempDir()}, "riscv64"); err == nil || !strings.Contains(err.Error(), "riscv64") {
		t.Errorf("want an error that names the architecture, got %v", err)
	}
}

func TestTheExpectedLineIsReported(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"clean": "ext4: clean, 11 files", "": "ERROR: no /dev/null", "dirty": ""} {
		if got := lineWith("ERROR: no /dev/null\next4: clean, 11 files\n", text); want != got {
			t.Errorf("%q: want %q, got %q", text, want, got)
		}
	}
}
