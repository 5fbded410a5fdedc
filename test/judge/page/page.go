// Package page writes generated tables into the pages of the documentation. A table stands between the lines <!-- NAME --> and <!-- end of NAME -->,
// and is made from records: JSON files of one directory.
package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Fill writes the tables, by their names, into a page.
func Fill(path string, tables map[string]string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	filled, err := With(string(text), tables)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(filled), 0o644)
}

// With is the text of a page with other tables. A table without its two lines is an error that names them.
func With(text string, tables map[string]string) (string, error) {
	for name, table := range tables {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->\n"
		before, rest, found := strings.Cut(text, begin)
		_, after, ends := strings.Cut(rest, end)
		if !found || !ends {
			return "", fmt.Errorf("no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
		}
		text = before + begin + table + end + after
	}
	return text, nil
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
