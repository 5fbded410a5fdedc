package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestATableStandsBetweenItsTwoLines(t *testing.T) {
	const text = "a\n<!-- one -->\nold\n<!-- end of one -->\nb\n<!-- two -->\n<!-- end of two -->\nc\n"
	got, err := With(text, map[string]string{"one": "1\n", "two": "2\n"})
	if err != nil {
		t.Fatal(err)
	}
	want := "a\n<!-- one -->\n1\n<!-- end of one -->\nb\n<!-- two -->\n2\n<!-- end of two -->\nc\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, without := range []string{"text\n", "<!-- one -->\n", "<!-- end of one -->\n<!-- one -->\n"} {
		if _, err := With(without, map[string]string{"one": ""}); err == nil || !strings.Contains(err.Error(), `"<!-- one -->" and "<!-- end of one -->"`) {
			t.Errorf("%q: want an error that names the lines, got %v", without, err)
		}
	}
}

func TestRecordsAreReadInTheOrderOfTheirNames(t *testing.T) {
	dir := t.TempDir()
	type record struct{ Value int }
	if _, err := Records[record](dir); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("want an error for a directory without records, got %v", err)
	}
	for name, text := range map[string]string{"b.json": `{"value": 2}`, "a.json": `{"value": 1}`, "c.txt": "no record"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Records[record](dir)
	if diff := cmp.Diff([]record{{1}, {2}}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "d.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Records[record](dir); err == nil || !strings.Contains(err.Error(), "d.json") {
		t.Errorf("want an error that names the file, got %v", err)
	}
}
