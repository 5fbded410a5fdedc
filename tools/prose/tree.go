package prose

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// skipped are directories that hold nothing that people wrote for people: test data, built files, generated bundles.
var skipped = []string{".git", "bin", "testdata", "overlays", "node_modules"}

// results are Markdown files that programs write.
var results = []string{"RESULTS.md"}

// Tree checks every Markdown and Go file below a directory of the repository. The paths of findings are relative to root.
func (c *Checker) Tree(root, dir string) ([]Finding, error) {
	var findings []Finding
	err := filepath.WalkDir(dir, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if full != dir && slices.Contains(skipped, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		found, err := c.file(root, full)
		findings = append(findings, found...)
		return err
	})
	Sort(findings)
	return findings, err
}

func (c *Checker) file(root, full string) ([]Finding, error) {
	kind := path.Ext(full)
	if kind != ".go" && kind != ".md" || slices.Contains(results, filepath.Base(full)) {
		return nil, nil
	}
	name, err := filepath.Rel(root, full)
	if err != nil {
		return nil, err
	}
	name = filepath.ToSlash(name)
	content, err := os.ReadFile(full)
	if err != nil {
		return nil, err
	}
	if kind == ".md" {
		return c.Markdown(name, content), nil
	}
	findings, err := c.GoSource(name, content)
	if err != nil {
		return nil, fmt.Errorf("check %s: %w", name, err)
	}
	return findings, nil
}
