package page

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestAPartIsReplacedAndTheRestStays(t *testing.T) {
	const text = "a\n<!-- one -->\nold\n<!-- end -->\nb\n<!-- two -->\n<!-- end -->\nc\n"
	got, err := With(text, map[string]string{"one": "new\n", "two": "more\n"})
	if want := "a\n<!-- one -->\nnew\n<!-- end -->\nb\n<!-- two -->\nmore\n<!-- end -->\nc\n"; err != nil || got != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if part, err := Part(text, "one"); part != "old\n" || err != nil {
		t.Errorf("got the part %q, %v", part, err)
	}
	for _, bad := range []string{"", "<!-- one -->\n", "<!-- end -->\n"} {
		if _, err := With(bad, map[string]string{"one": "x"}); err == nil || !strings.Contains(err.Error(), "<!-- one -->") {
			t.Errorf("%q: want an error that names the part, got %v", bad, err)
		}
	}
}

func TestATableHasALineForEachRow(t *testing.T) {
	if got, want := Table([]string{"a", "b"}, [][]string{{"1", "2"}, {"3", ""}}), "| a | b |\n| --- | --- |\n| 1 | 2 |\n| 3 |  |\n"; got != want {
		t.Errorf("want %q, got %q", want, got)
	}
}

func TestRecordsAreReadInOrderAndNoneIsAnError(t *testing.T) {
	dir := t.TempDir()
	if _, err := Records[int](dir); err == nil {
		t.Error("want an error for a directory without records")
	}
	for name, n := range map[string]int{"b.json": 2, "a.json": 1} {
		if err := Keep(filepath.Join(dir, name), n); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := Records[int](dir); err != nil || len(got) != 2 || got[0] != 1 {
		t.Errorf("got %v, %v", got, err)
	}
	testfile.Write(t, filepath.Join(dir, "c.json"), "{", 0o600)
	if _, err := Records[int](dir); err == nil || !strings.Contains(err.Error(), "c.json") {
		t.Errorf("want an error that names the file, got %v", err)
	}
}
