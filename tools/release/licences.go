package release

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var licenceRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| ([^|]+) \\|")

// readLicences reads the licence of each linked module from the reference page, which a test compares with the texts of the licences.
func readLicences(page string) (map[string]string, error) {
	content, err := os.ReadFile(page)
	if err != nil {
		return nil, err
	}
	licences := map[string]string{}
	for _, row := range licenceRow.FindAllStringSubmatch(string(content), -1) {
		licences[row[1]] = strings.ReplaceAll(strings.TrimSpace(row[2]), ", ", " AND ")
	}
	if len(licences) == 0 {
		return nil, fmt.Errorf("%s has no row with a module and its licence", page)
	}
	return licences, nil
}

// notices are the files of a module that its licence asks distributors to pass on.
var notices = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice)`)

// copyLicences writes the licence of the project, and the licences of all linked modules as one text. The licences of Debian packages
// are in the images.
func (r *release) copyLicences(ctx context.Context) error {
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	list, err := run(ctx, "", nil, "go", "list", "-m", "-f", "{{.Path}}\t{{.Dir}}", "all")
	if err != nil {
		return err
	}
	holders := map[string][]string{} // of a text: the modules that have it
	for line := range strings.Lines(string(list)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		version, linked := r.modules[path]
		if !linked {
			continue
		}
		texts, err := noticesIn(dir)
		if err != nil {
			return fmt.Errorf("licence of %s: %w", path, err)
		}
		for _, text := range texts {
			holders[text] = append(holders[text], path+" "+version)
		}
	}
	return errors.Join(r.write("LICENSE", own, 0o644), r.write("THIRD_PARTY_LICENSES.txt", thirdParty(holders), 0o644))
}

// noticesIn returns the texts of the notices at the top of a module.
func noticesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, entry := range entries {
		if entry.IsDir() || !notices.MatchString(entry.Name()) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, strings.TrimSpace(string(content)))
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s has none", dir)
	}
	return texts, nil
}

// thirdParty writes each text once, after the modules that have it, in the order of the first module.
func thirdParty(holders map[string][]string) []byte {
	for _, modules := range holders {
		slices.Sort(modules)
	}
	texts := slices.SortedFunc(maps.Keys(holders), func(a, b string) int {
		if order := slices.Compare(holders[a], holders[b]); order != 0 {
			return order
		}
		return strings.Compare(a, b)
	})
	var w strings.Builder
	for _, text := range texts {
		fmt.Fprintf(&w, "%s\n\n%s\n\n%s\n\n", strings.Join(holders[text], "\n"), text, strings.Repeat("-", 80))
	}
	return []byte(w.String())
}
