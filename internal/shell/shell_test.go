package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// hostile are texts that do something in a shell, or that a program takes for a flag.
var hostile = []string{
	"", "a b", "$(touch x)", "`touch x`", "x;touch x;#", "x'\"y", "x\ny", "*", "~", "!!", "a|b", "a&b", "<in", "{a,b}", "[ab]", "x\\", "#x", "é", "--all",
}

func TestEveryTextStaysOneWord(t *testing.T) {
	t.Parallel()
	for _, text := range append(hostile, "shop", "spec.drivers[*].name", "a=b,c=d") {
		out, err := exec.Command("sh", "-c", "printf '<%s>' "+shell.Word(text)).Output()
		if want := "<" + text + ">"; err != nil || string(out) != want {
			t.Errorf("%q: want %q, got %q: %v", text, want, out, err)
		}
	}
}

func TestACompletionOffersOnlyWhatIsAWordWithoutQuotes(t *testing.T) {
	t.Parallel()
	fit := []string{"sim-demo", "shop/data", "containers[driver].args", "a=b,c", "app.kubernetes.io/name"}
	unfit := append([]string{"x\ty", "x\ry", "$x", "-v", "volumetype/`touch${IFS}x`"}, hostile...)
	if diff := cmp.Diff(fit, shell.Candidates(append(unfit, fit...))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestALineHasAsManyWordsAsItWasGiven(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("sh", "-c", "for word in "+shell.Line(hostile...)+"; do printf '%s\\0' \"$word\"; done").Output()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(hostile, strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatIsNoIDAndNoNameBecomesAPlaceholder(t *testing.T) {
	t.Parallel()
	const id = "9f445367-ee0c-4f56-93e5-9bdef423e884"
	if got := shell.ID(id, "SERVER"); got != id {
		t.Errorf("want the ID, got %s", got)
	}
	for _, name := range []string{"a", "csi-0a", "node-1.example.org"} {
		if got := shell.Name(name, "NODE"); got != name {
			t.Errorf("want %s, got %s", name, got)
		}
	}
	for _, text := range append(hostile, id+"x", "-"+id, "A", "a.-b", "a..b", strings.Repeat("a", 254)) {
		if got := shell.ID(text, "SERVER"); got != "SERVER" {
			t.Errorf("%q counts as an ID", text)
		}
		if got := shell.Name(text, "NODE"); got != "NODE" && text != id+"x" {
			t.Errorf("%q counts as a name", text)
		}
	}
	for text, want := range map[string]bool{"shop": true, "a.b": false, "": false, strings.Repeat("a", 64): false, "-a": false} {
		if shell.IsLabel(text) != want {
			t.Errorf("%q: want label %t", text, want)
		}
	}
}
