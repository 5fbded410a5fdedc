package recipes

import (
	"bytes"
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

//go:embed shell.sh
var shell string

// line is one command line, and where it stands.
type line struct{ place, text string }

// call is a call of go or make, with the words that the shell passes.
type call struct {
	place string
	dir   string // from the top of the source tree
	words []string
}

// callsOf returns the calls of go and make in the lines. Nothing runs: the shell finds no other program, in an empty directory.
func callsOf(t *testing.T, lines []line) []call {
	t.Helper()
	args := []string{"-c", shell, "bash"}
	for _, l := range lines {
		args = append(args, l.place, l.text)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	bash := exec.CommandContext(t.Context(), "bash", args...)
	var stderr bytes.Buffer
	bash.Dir, bash.Env, bash.Stderr, bash.ExtraFiles = t.TempDir(), []string{"PATH=/nonexistent"}, &stderr, []*os.File{writer}
	if err := bash.Start(); err != nil {
		t.Fatalf("this test needs bash, as the Makefile does: %v", err)
	}
	writer.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(reader); err != nil {
		t.Fatal(err)
	}
	if err := bash.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	var calls []call
	for record := range strings.Lines(out.String()) {
		fields := strings.Split(strings.TrimSuffix(record, "\x1f\n"), "\x1f")
		calls = append(calls, call{place: fields[0], dir: filepath.Clean(fields[1]), words: fields[2:]})
	}
	return calls
}

func TestTheShellExpandsALineAndRunsNothing(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		`go test -run '^TestA$$' ./a`:         `. go|test|-run|^TestA$$|./a`,
		`cd a && cd b && X=1 go test "./c d"`: `a/b go|test|./c d`,
		`for f in x:F y:G; do go test "./${f%:*}" -fuzz "^${f#*:}\$"; done`: `. go|test|./x|-fuzz|^F$
. go|test|./y|-fuzz|^G$`,
		`go test $(go list ./... | grep -v slow) 2>&1 | tail`: `. go|list|./...
. go|test|./...`,
		"touch " + dir + "/a; : >b; " + dir + "/x.sh; make a B='c d'": `. make|a|B=c d`,
	} {
		var got []string
		for _, c := range callsOf(t, []line{{"here", text}}) {
			got = append(got, c.dir+" "+strings.Join(c.words, "|"))
		}
		if strings.Join(got, "\n") != want {
			t.Errorf("%s\nwant %s\ngot  %s", text, want, strings.Join(got, "\n"))
		}
	}
	if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
		t.Errorf("want nothing written, got %v, %v", made, err)
	}
	// A double dollar outside of single quotes is the number of the shell's process.
	got := callsOf(t, []line{{"here", `go test -run "^TestA$$/"`}})
	if want := []string{"go", "test", "-run", "^TestA$$/"}; len(got) != 1 || slices.Equal(got[0].words, want) {
		t.Errorf("want the pattern with a number, got %v", got)
	}
}
