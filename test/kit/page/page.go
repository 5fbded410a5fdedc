// Package page fills the generated parts of pages, and keeps the records that they are made from. A part stands between the lines <!-- NAME --> and
// <!-- end -->. A record is a JSON file of one run.
package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const end = "<!-- end -->"

// cut takes a text apart at a part.
func cut(text, name string) (before, part, after string, err error) {
	begin := "<!-- " + name + " -->\n"
	before, rest, found := strings.Cut(text, begin)
	part, after, ends := strings.Cut(rest, end)
	if !found || !ends {
		return "", "", "", fmt.Errorf("no part between the lines %q and %q", strings.TrimSpace(begin), end)
	}
	return before + begin, part, end + after, nil
}

// Part is the present text of a part.
func Part(text, name string) (string, error) {
	_, part, _, err := cut(text, name)
	return part, err
}

// With is the text with other parts. A part without its two lines is an error that names them.
func With(text string, parts map[string]string) (string, error) {
	for name, part := range parts {
		before, _, after, err := cut(text, name)
		if err != nil {
			return "", err
		}
		text = before + part + after
	}
	return text, nil
}

// filled is a page as it is, and with the parts.
func filled(path string, parts map[string]string) (is, want string, err error) {
	text, err := os.ReadFile(path)
	if err == nil {
		want, err = With(string(text), parts)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return string(text), want, err
}

// Fill writes the parts, by their names, into a page.
func Fill(path string, parts map[string]string) error {
	_, want, err := filled(path, parts)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(want), 0o644)
}

// Hold fails the test if a page has other parts. With update it writes them instead. The command does that.
func Hold(t testing.TB, path string, parts map[string]string, update bool, command string) {
	t.Helper()
	is, want, err := filled(path, parts)
	if err == nil && update {
		err = Fill(path, parts)
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, is); diff != "" && !update {
		t.Errorf("%s is stale; %s writes it (-want +got):\n%s", path, command, diff)
	}
}

// Table is a table in Markdown.
func Table(head []string, rows [][]string) string {
	var b strings.Builder
	for _, cells := range slices.Concat([][]string{head, slices.Repeat([]string{"---"}, len(head))}, rows) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

// Records reads the records of a directory, in the order of their files' names. None at all is an error: a page without figures would be made of it.
func Records[T any](dir string) ([]T, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, errors.New("no record in " + dir)
	}
	slices.Sort(names)
	var all []T
	for _, name := range names {
		record, err := Record[T](name)
		if err != nil {
			return nil, err
		}
		all = append(all, record)
	}
	return all, nil
}

// Record reads one record.
func Record[T any](path string) (T, error) {
	var record T
	text, err := os.ReadFile(path)
	if err != nil {
		return record, err
	}
	if err := json.Unmarshal(text, &record); err != nil {
		return record, fmt.Errorf("%s: %w", path, err)
	}
	return record, nil
}

// Keep writes one record.
func Keep(path string, record any) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
