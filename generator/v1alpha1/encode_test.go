package v1alpha1

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A document has its keys in the order of its types, and every value reads back as it was.
func TestYAMLKeepsOrderAndValues(t *testing.T) {
	document := struct {
		Z       string         `json:"z"`
		Text    []string       `json:"text"`
		Number  []any          `json:"number"`
		Nothing any            `json:"nothing"`
		List    []string       `json:"list"`
		Object  map[string]any `json:"object"`
	}{
		Z:      "plain words",
		Text:   []string{"no", "012", "12:30", "", "two\nlines", "one\u2028text", "53d4f774-ec9c-4ed3-a1d1-89d48bde7502", "<a> & b"},
		Number: []any{1, -2.5, 1e21, true, map[string]any{"b": nil, "a": "x"}},
		List:   []string{}, Object: map[string]any{},
	}
	const want = `z: plain words
text:
  - "no"
  - "012"
  - "12:30"
  - ""
  - |-
    two
    lines
  - "one\Ltext"
  - 53d4f774-ec9c-4ed3-a1d1-89d48bde7502
  - <a> & b
number:
  - 1
  - -2.5
  - 1e+21
  - true
  - a: x
    b: null
nothing: null
list: []
object: {}
`
	for range 2 { // the second time, the texts are judged already
		got, err := YAML(document)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
}

// A text of plan.yaml may be as long as the file. No parser looks at one that costs it much.
func TestALongTextHasQuotes(t *testing.T) {
	for text, plain := range map[string]bool{
		"a: " + strings.Repeat("x", 2*longestPlain): false,
		"(" + strings.Repeat("x", longestPlain):     false,
		"(" + strings.Repeat("x", longestPlain-1):   true,
		"%TAG !a! x\r--- a":                         false,
		"%TAG !a! x\n--- a":                         true,
		"a\n\nb":                                    true,
		"a\n \t::notice::b":                         false, // a command of a runner
		"::notice::b":                               false,
		"a\n##[error]b":                             false,
		"a ::b":                                     true,
		"word " + strings.Repeat("word ", 1000) + "end":  true,
		"{" + strings.Repeat("a, ", longestPlain) + "a}": false,
	} {
		if got := PlainText(text); got != plain {
			t.Errorf("%.40q of %d bytes: want %t, got %t", text, len(text), plain, got)
		}
	}
}
