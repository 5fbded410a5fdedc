// Package mutant builds tests of the product with one rule broken. Nothing in the tree changes: go test -overlay reads other copies of the files.
package mutant

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mutant is the product with one rule broken.
type Mutant struct {
	Name, Rule string
	Edits      []Edit

	// CaughtBy is the test that must fail, quickly and without root. A mutant without it is caught by its recorded history alone.
	CaughtBy Test
}

// Test is the tests of one package whose names match a pattern.
type Test struct{ Package, Pattern string }

// Edit replaces a text that occurs once in the files of a package, tests aside. It names no file and no line, so that it still applies after
// most changes of the product.
type Edit struct{ Package, Old, New string }

// Changed returns the files that the mutant changes, with their new text, by absolute path. The root is the directory to which packages are relative.
func (m Mutant) Changed(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.Edits {
		file, text, err := e.find(root, files)
		if err != nil {
			return nil, fmt.Errorf("mutant %s no longer applies: %w\n"+
				"Find the code that now keeps this rule: %s. Copy its present text into the edit; never remove a mutant", m.Name, err, m.Rule)
		}
		files[file] = strings.Replace(text, e.Old, e.New, 1)
	}
	return files, nil
}

// find returns the file with the old text, and the text of that file after earlier edits of the same mutant.
func (e Edit) find(root string, edited map[string]string) (file, text string, err error) {
	files, err := filepath.Glob(filepath.Join(root, e.Package, "*"))
	if err != nil {
		return "", "", err
	}
	occurrences := 0
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.IsDir() || strings.HasSuffix(f, "_test.go") {
			continue
		}
		content, ok := edited[f]
		if !ok {
			b, err := os.ReadFile(f)
			if err != nil {
				return "", "", err
			}
			content = string(b)
		}
		if n := strings.Count(content, e.Old); n > 0 {
			occurrences += n
			file, text = f, content
		}
	}
	if occurrences != 1 || e.Old == e.New {
		return "", "", fmt.Errorf("package %s has this text %d times, want once: %s", e.Package, occurrences, e.Old)
	}
	return file, text, nil
}

// overlay writes the changed files below dir, and the file for go's flag -overlay, whose path it returns.
func overlay(changed map[string]string, dir string) (string, error) {
	replace := map[string]string{}
	for file, text := range changed {
		copied := filepath.Join(dir, fmt.Sprint(len(replace), filepath.Ext(file)))
		if err := os.WriteFile(copied, []byte(text), 0o644); err != nil {
			return "", err
		}
		replace[file] = copied
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o644)
}

// Overlay writes the files of the mutant below dir, and the file for go's flag -overlay, whose path it returns.
func (m Mutant) Overlay(root, dir string) (string, error) {
	changed, err := m.Changed(root)
	if err != nil {
		return "", err
	}
	return overlay(changed, dir)
}
