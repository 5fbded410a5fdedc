package cli

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/printable"
)

func TestALineOfATerminalIsFolded(t *testing.T) {
	var out strings.Builder
	w := &folded{out: &out, columns: 20}
	for _, text := range []string{"Warning: x", "          ok: verified\nsecond\n", "\n", strings.Repeat("a", 20) + "\n" + strings.Repeat("界", 11) + "\n"} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	_, _ = w.Write([]byte("last"))
	w.end()
	w.end()
	want := "Warning: x\n|  ok: verified\nsecond\n\n" + strings.Repeat("a", 20) + "\n" + strings.Repeat("界", 8) + "\n|  " + strings.Repeat("界", 3) + "\nlast\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// Every message goes through it: errors, warnings, and what became of a key.
func TestNoTextBeginsARowOfAMessage(t *testing.T) {
	for _, args := range [][]string{{"explain", "x" + strings.Repeat(" ", 74) + "ok: verified"}, {"import", "FILE"}} {
		b := newBed(t)
		if args[1] == "FILE" {
			args[1] = b.file(t, "all.yaml", "apiVersion: v1\nkind: List\nitems: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: c}, spec: {template: {spec: {containers: [{name: p, image: x/cinder-csi-plugin:v1, args: [--cluster=blue, \"--x"+strings.Repeat(" ", 90)+"ok: verified\"]}]}}}}]\n")
		}
		for columns := 40; columns < 120; columns++ {
			b.ErrorColumns = columns
			_, stderr, _ := b.run(t, args...)
			if stderr == "" {
				t.Fatal(args, "nothing is said")
			}
			for line := range strings.Lines(stderr) {
				if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "ok: ") || printable.Columns(line) > columns {
					t.Errorf("%d columns: got the row %q", columns, line)
				}
			}
		}
	}
}
