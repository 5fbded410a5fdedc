package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// wordLimits are the most words of a page, by the longest prefix of its path. Parts that a program writes do not count. A page that needs
// more answers two questions, or records a run: records are beside their tests.
var wordLimits = map[string]int{
	"../README.md":                 900,
	"../CHANGELOG.md":              400,
	"../docs/how-to/":              1200,
	"../docs/how-to/troubleshoot":  2200,
	"../docs/tutorial/":            1200,
	"../docs/explanation/":         1500,
	"../docs/explanation/security": 2000,
	"../docs/reference/":           2500,
}

// What a reader may have to read in all: prose of every page, and the pages of users with their tables. The numbers may only fall.
const (
	indexLimit = 51000
	usersLimit = 60000
)

var writtenPart = regexp.MustCompile(`(?s)<!-- [a-z -]+ -->\n.*?<!-- end -->`)

// folded is the mark of a further row in a report of kubectl cinder. It is no word.
var folded = regexp.MustCompile(`(?m)^ +\|  `)

// prose are the words of a page without the parts that a program writes.
func prose(text string) int {
	return len(strings.Fields(writtenPart.ReplaceAllString(text, "")))
}

// limitOf is the limit of a page, 0 if it has none.
func limitOf(name string) int {
	limit, longest := 0, ""
	for prefix, words := range wordLimits {
		if strings.HasPrefix(name, prefix) && len(prefix) > len(longest) {
			limit, longest = words, prefix
		}
	}
	return limit
}

func TestNoPageIsLongerThanAReaderReads(t *testing.T) {
	index, users := 0, 0
	for _, name := range pages(t) {
		if !strings.HasPrefix(name, "../docs/") && filepath.Dir(name) != ".." || name == "../THIRD_PARTY.md" { // which is for machines
			continue
		}
		text := testfile.Text(t, name)
		words := prose(text)
		t.Logf("%6d of prose, %6d in all: %s", words, len(strings.Fields(text)), strings.TrimPrefix(name, "../"))
		limit := limitOf(name)
		if limit > 0 && words > limit {
			t.Errorf("%s has %d words, and may have %d", name, words, limit)
		}
		index += words
		if !strings.HasPrefix(name, "../docs/contributing/") && !strings.HasPrefix(name, "../docs/explanation/decisions/") {
			users += len(strings.Fields(folded.ReplaceAllString(text, "")))
		}
	}
	t.Logf("%d words of prose, and %d that a user may read", index, users)
	if index > indexLimit {
		t.Errorf("all pages have %d words of prose, and may have %d", index, indexLimit)
	}
	if users > usersLimit {
		t.Errorf("the pages of users have %d words with their tables, and may have %d", users, usersLimit)
	}
}

func TestWrittenPartsAreNoProse(t *testing.T) {
	if got := prose("# A b\n\n<!-- table-one -->\n| c | d |\n<!-- end -->\n\ne\n"); got != 4 {
		t.Errorf("want the words # A b e, got %d", got)
	}
	for name, want := range map[string]int{
		"../docs/how-to/troubleshoot.md": 2200, "../docs/how-to/upgrade.md": 1200, "../README.md": 900, "../RELEASE.md": 0, "../docs/reference/driver.md": 2500,
	} {
		if got := limitOf(name); got != want {
			t.Errorf("%s: want the limit %d, got %d", name, want, got)
		}
	}
}

// A reader without a checkout has the manifest from the page; it is the one that the tests run.
func TestThePageAboutVolumesShowsItsExample(t *testing.T) {
	_, example, _ := strings.Cut(testfile.Text(t, "../examples/workloads/claim-and-pod.yaml"), "\n")
	if !strings.Contains(testfile.Text(t, "../docs/how-to/use-volumes.md"), "```yaml\n"+example+"```\n") {
		t.Errorf("docs/how-to/use-volumes.md does not show examples/workloads/claim-and-pod.yaml:\n%s", example)
	}
}
