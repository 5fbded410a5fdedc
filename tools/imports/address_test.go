package imports_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// unowned are addresses in the name of the project. Nobody has registered them, so a stranger may: then an alert, a bundle or an image would send
// people there. The path of the Go module is a name, and no address.
var unowned = regexp.MustCompile(`(?i)https?(?:://|%3a%2f%2f)(?:[\w.-]+\.)?(?:(?:github|githubusercontent|gitlab)\.com/cinder-csi\b|cinder-csi\.(?:io|org|dev|com)\b|cinder-csi\.(?:github|gitlab)\.io\b)` +
	`|\bgit@github\.com:cinder-csi\b|\b(?:ghcr\.io|quay\.io|docker\.io|registry\.gitlab\.com)/cinder-csi\b`)

// unownedIn are the files that may have such an address, and why.
var unownedIn = map[string]string{
	"tools/imports/address_test.go": "the examples of this test",
}

func TestNoFileNamesAnAddressThatNobodyOwns(t *testing.T) {
	root := "../.."
	seen, files := map[string]bool{}, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		if entry.IsDir() {
			if name == ".git" || name == "bin" || name == "dist" || strings.HasSuffix(name, "/node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if !entry.Type().IsRegular() || name == ".git" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil || bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
			return err // a program or a picture
		}
		files++
		for i, line := range strings.Split(string(text), "\n") {
			found := unowned.FindString(line)
			if found == "" {
				continue
			}
			seen[name] = true
			if unownedIn[name] == "" {
				t.Errorf("%s:%d: nobody owns %s; name the page by its path, or let the configuration give the address", name, i+1, found)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 1000 {
		t.Errorf("only %d files were read", files)
	}
	for name := range unownedIn {
		if !seen[name] {
			t.Errorf("%s has no such address any more: take it from the list", name)
		}
	}
}

func TestTheModulePathIsNoAddress(t *testing.T) {
	for text, want := range map[string]bool{
		"https://github.com/cinder-csi/cinder-csi/blob/main/x": true, "HTTP://www.cinder-csi.io": true, "git+https://github.com/cinder-csi": true, "ghcr.io/cinder-csi/x": true,
		"https%3A%2F%2Fgithub.com/cinder-csi": true, "git@github.com:cinder-csi/x": true, "https://raw.githubusercontent.com/cinder-csi/x": true,
		"github.com/cinder-csi/cinder-csi/driver": false, "generator.cinder-csi.io/v1alpha1": false, "pkg:golang/github.com/cinder-csi/cinder-csi@v1": false,
		"registry.invalid/cinder-csi/cinder-csi-driver": false, "https://git.example.com/cinder-csi": false,
	} {
		if got := unowned.MatchString(text); got != want {
			t.Errorf("%s: want %t", text, want)
		}
	}
}
