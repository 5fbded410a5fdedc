package documents

import (
	"fmt"
	"strings"
	"testing"
)

func repeat(n int, line string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, line+"\n", i)
	}
	return b.String()
}

const (
	tooMany = "has more than 400000 keys and items"
	tooLong = "its aliases stand for more than 1048576 bytes"
)

func TestATextIsRefusedAboveItsBounds(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"nothing":                        {"", ""},
		"the keys that one may have":     {repeat(mostInMapping, "k%d: 1"), ""},
		"one key more":                   {repeat(mostInMapping+1, "k%d: 1"), "line 1: a mapping has more than 5000 keys"},
		"many keys inside":               {"a:\n  - b:\n" + repeat(mostInMapping+1, "      k%d: 1"), "line 3: a mapping has more than 5000 keys"},
		"many keys on one line":          {"{" + strings.ReplaceAll(repeat(mostInMapping+1, "k%d: 1,"), "\n", " ") + "}", "line 1: a mapping has more than 5000 keys"},
		"many keys of a set":             {"a: {" + repeat(mostInMapping+1, "k%d,") + "}", "line 1: a mapping has more than 5000 keys"},
		"many keys of a set on lines":    {repeat(mostInMapping+1, "? k%d"), "line 1: a mapping has more than 5000 keys"},
		"many keys in the second":        {"a: 1\n---\n" + repeat(mostInMapping+1, "k%d: 1"), "line 3: a mapping has more than 5000 keys"},
		"many small mappings":            {"a:\n" + repeat(mostInMapping*2, "- b: %d"), ""},
		"more keys than memory is for":   {repeat(MostNodes+1, "? a%d"), tooMany},
		"the items that it may have":     {strings.Repeat("-\n", MostNodes), ""},
		"one item more":                  {strings.Repeat("-\n", MostNodes) + "-", tooMany},
		"items inside of items":          {strings.Repeat("- - -\tx\n", MostNodes/3+1), tooMany},
		"items on lines of Windows":      {strings.Repeat("-\r", MostNodes+1), tooMany},
		"items on lines of Unicode":      {strings.Repeat("-\u0085-\u2028-\u2029", MostNodes/3+1), tooMany},
		"items in brackets":              {strings.Repeat("[", MostNodes+1), tooMany},
		"items in braces":                {strings.Repeat("{", MostNodes+1), tooMany},
		"declared tags":                  {repeat(mostTags, "%%TAG !%d! x") + "--- a", ""},
		"one declared tag more":          {repeat(mostTags+1, "%%TAG !%d! x") + "--- a", "declares more than 20 tags"},
		"an alias of a short text":       {"a: &a " + strings.Repeat("x", 1<<10) + "\nb: [" + strings.Repeat("*a, ", 1<<10-1) + "]", ""},
		"one alias more":                 {"a: &a " + strings.Repeat("x", 1<<10) + "\nb: [" + strings.Repeat("*a, ", 1<<10+8) + "]", tooLong},
		"an alias of aliases":            {"a: &a xxxxxxxxxx\nb: &b [*a" + strings.Repeat(", *a", 400) + "]\nc: [*b" + strings.Repeat(", *b", 400) + "]", tooLong},
		"an alias of aliases of a key":   {"a: &a {" + strings.Repeat("x", 1<<10) + ": 1}\nb: [" + strings.Repeat("*a, ", 1<<10+8) + "]", tooLong},
		"aliases of two documents":       {strings.Repeat("a: &a "+strings.Repeat("x", 1<<10)+"\nb: ["+strings.Repeat("*a, ", 700)+"]\n---\n", 2), tooLong},
		"an alias inside of its anchor":  {"a: &a [*a, *a]", ""},
		"UTF-16":                         {"\xff\xfe-\x00\n\x00", "has a zero byte; save it as UTF-8"},
		"dashes in names":                {"a: " + strings.Repeat("a-b", MostNodes+1), ""},
		"the documents that it may have": {strings.Repeat("---\na: 1\n", mostDocuments), ""},
		"one document more":              {strings.Repeat("---\na: 1\n", mostDocuments+1), "has more than 20000 documents"},
		"no YAML":                        {"a: [" + repeat(mostInMapping+1, "k%d: 1"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := Check([]byte(test.text)); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("want %q, got %q", test.want, got)
			}
		})
	}
}
