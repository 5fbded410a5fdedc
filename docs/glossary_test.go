package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

const glossary = "contributing/glossary.md"

// place is a link to an identifier of a file. TestEveryLinkLeadsSomewhere checks that the file exists.
var place = regexp.MustCompile("\\[`([^`]+)`\\]\\(([^)#]+)\\)")

// concept is a row of the glossary.
type concept struct{ word, meaning, place string }

func concepts(t *testing.T) []concept {
	t.Helper()
	var all []concept
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`).FindAllStringSubmatch(testfile.Text(t, glossary), -1) {
		if row[1] != "word" && row[1] != "---" {
			all = append(all, concept{row[1], row[2], row[3]})
		}
	}
	if len(all) < 50 {
		t.Fatalf("the glossary has %d words, want at least 50", len(all))
	}
	return all
}

func TestTheGlossaryExplainsEachWordOnceInOneSentence(t *testing.T) {
	var words []string
	for _, c := range concepts(t) {
		if slices.Contains(words, c.word) {
			t.Errorf("%s is in the glossary twice", c.word)
		}
		words = append(words, c.word)
		if strings.Contains(c.meaning, ". ") || len(strings.Fields(c.meaning)) > 25 {
			t.Errorf("%s: want one sentence of at most 25 words, got %q", c.word, c.meaning)
		}
		if !strings.Contains(c.place, "](") {
			t.Errorf("%s has no place", c.word)
		}
	}
	// The words of the architecture that no other words may replace.
	for _, word := range []string{
		"inventory", "fact", "plan", "bundle", "target", "plane", "zone", "type", "class", "server", "node", "hub", "bed", "orphan", "lost volume",
	} {
		if !slices.Contains(words, word) {
			t.Errorf("the glossary does not explain %s", word)
		}
	}
}

func TestEachPlaceOfTheGlossaryHasItsWord(t *testing.T) {
	for _, c := range concepts(t) {
		for _, link := range place.FindAllStringSubmatch(c.place, -1) {
			text, err := os.ReadFile(filepath.Join(filepath.Dir(glossary), link[2]))
			if err != nil {
				t.Errorf("%s: %v", c.word, err)
			} else if !defines(string(text), link[1]) {
				t.Errorf("%s: %s does not define %s", c.word, link[2], link[1])
			}
		}
	}
}

// defines reports whether a file defines a name. In Go that is a type, function, method, constant or variable, or an entry of a table. In a
// script it is a variable.
func defines(text, name string) bool {
	quoted := regexp.QuoteMeta(name)
	return regexp.MustCompile(`(?m)^(type|const|var|func|func \([^)]*\)) ` + quoted + `\b|^\t` + quoted + ` .*=|^\t\{"` + quoted + `"|^` + quoted + `=`).MatchString(text)
}

func TestOnlyADefinitionIsAPlace(t *testing.T) {
	for text, want := range map[string]bool{
		"type Hub struct {": true, "func Hub(": true, "func (h *x) Hub() {": true, "const Hub = 1": true, "var Hub = 1": true, "\tHub = \"x\"": true,
		"\t{\"Hub\", \"why\"},": true, "Hub=\"a b\"": true,
		"// Hub is": false, "type Hubs struct {": false, "\treturn Hub": false, "": false,
	} {
		if defines(text, "Hub") != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}
