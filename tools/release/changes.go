package release

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// dated is the heading of a section whose version is released: Keep a Changelog has the day after the version.
var dated = regexp.MustCompile(`^\[[^]]+\] - [0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// CheckTag refuses a tag that is not the version of chart and changelog, or whose section of the changelog has no day.
func CheckTag(root, tag string) error {
	if tag == "" {
		return fmt.Errorf("no tag: name the tag that is to be released, such as v0.1.0")
	}
	if _, err := checkVersion(root, tag); err != nil {
		return err
	}
	heading, _, err := section(root, tag)
	if err != nil {
		return err
	}
	if !dated.MatchString(heading) {
		return fmt.Errorf("release %s: CHANGELOG.md has the heading %q: put the day of the release after the version, such as %q", tag, heading, "["+strings.TrimPrefix(tag, "v")+"] - 2026-01-31")
	}
	return nil
}

// Changes is the text of a version's section in the changelog, without its heading.
func Changes(root, version string) (string, error) {
	_, text, err := section(root, version)
	return text, err
}

func section(root, version string) (heading, text string, err error) {
	content, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return "", "", err
	}
	start := []byte("\n## [" + strings.TrimPrefix(version, "v") + "]")
	_, rest, found := bytes.Cut(content, start)
	if !found {
		return "", "", fmt.Errorf("CHANGELOG.md has no section %q", strings.TrimSpace(string(start)))
	}
	whole, _, _ := strings.Cut("["+strings.TrimPrefix(version, "v")+"]"+string(rest), "\n## ")
	heading, text, _ = strings.Cut(whole, "\n")
	return strings.TrimSpace(heading), strings.TrimSpace(text) + "\n", nil
}
