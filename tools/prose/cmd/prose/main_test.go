package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
	"github.com/cinder-csi/cinder-csi/tools/prose"
)

// repository makes an empty repository with one file and makes it the working directory.
func repository(t *testing.T, content string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.MkdirAll("tools/prose", 0o755); err != nil {
		t.Fatal(err)
	}
	change(t, content)
}

func change(t *testing.T, content string) {
	t.Helper()
	testfile.Write(t, "a.md", content, 0o644)
}

func TestNumberOfFindingsMayOnlyFall(t *testing.T) {
	repository(t, "The glimpse ends.\n\nA sighting.\n")
	if err := run(io.Discard, false, false, false, nil); err == nil {
		t.Error("want an error without a baseline, got none")
	}
	if err := run(io.Discard, true, false, false, nil); err != nil {
		t.Fatalf("the first baseline: %v", err)
	}
	if err := run(io.Discard, false, false, false, nil); err != nil {
		t.Errorf("as the baseline says: %v", err)
	}
	change(t, "The glimpse ends.\n\nA sighting anew.\n")
	var out strings.Builder
	if err := run(&out, false, false, false, nil); err == nil {
		t.Error("a new finding is accepted")
	}
	if want := "a.md:3: word: \"anew\" is rejected; write again\n\tA sighting anew."; !strings.Contains(out.String(), want) {
		t.Errorf("want %q in the output, got %q", want, out.String())
	}
	if err := run(io.Discard, true, false, false, nil); err == nil {
		t.Error("-update accepts a rise")
	}
	change(t, "The glimpse ends.\n")
	if err := run(io.Discard, true, false, false, nil); err != nil {
		t.Errorf("-update after a fall: %v", err)
	}
	change(t, "The glimpse ends.\n\nA sighting.\n")
	if err := run(io.Discard, false, false, false, nil); err == nil {
		t.Error("the fall is forgotten")
	}
}

func TestFindingsMoveWithTheirFile(t *testing.T) {
	repository(t, "The glimpse ends.\n")
	if err := run(io.Discard, true, false, false, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("a.md", "b.md"); err != nil {
		t.Fatal(err)
	}
	if err := run(io.Discard, true, false, false, nil); err != nil {
		t.Errorf("-update after a rename: %v", err)
	}
}

func TestSummaryCountsEachRule(t *testing.T) {
	b := prose.Baseline{{Place: "a.md", Rule: prose.Word}: 2, {Place: "b.md", Rule: prose.Word}: 1, {Place: ".", Rule: prose.Name}: 4}
	if want, got := "word 3, length 0, name 4", summary(b); want != got {
		t.Errorf("want %q, got %q", want, got)
	}
}
