// Package testfile reads and writes the files of a test. The test ends at the first error.
package testfile

import (
	"os"
	"path/filepath"
	"testing"
)

// Write writes a file, and makes the directories above it.
func Write[T string | []byte](t testing.TB, path string, content T, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}

// Read returns what a file holds.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// Text returns what a file holds, as a string.
func Text(t testing.TB, path string) string {
	t.Helper()
	return string(Read(t, path))
}

// Tree writes files below a new directory, and returns that.
func Tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		Write(t, filepath.Join(root, name), text, 0o644)
	}
	return root
}
