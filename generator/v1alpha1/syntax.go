package v1alpha1

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// What the YAML library says about a text that it cannot read.
var (
	atLine       = regexp.MustCompile(`^line (\d+): (.*)$`)
	twice        = regexp.MustCompile(`^mapping key "(.*)" already defined at line (\d+)$`)
	noAnchor     = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	libraryHeads = strings.NewReplacer("yaml: ", "", "unmarshal errors:\n", "")
)

// notText is what a file is that holds bytes which no text has.
const notText = "is no text in UTF-8; want YAML or JSON"

// syntax says why a text is no YAML, in words that are none of the library's.
func (d *decoder) syntax(data []byte, err error) error {
	if !utf8.Valid(data) || bytes.ContainsRune(data, 0) {
		return &DecodeError{Problems: []string{d.file + ": " + notText}}
	}
	lines := strings.Split(string(data), "\n")
	for message := range strings.Lines(libraryHeads.Replace(err.Error())) {
		message, line := strings.TrimSpace(message), 0
		if found := atLine.FindStringSubmatch(message); found != nil {
			_, _ = fmt.Sscan(found[1], &line)
			message = found[2]
		}
		if strings.Contains(message, "found a tab character") && !indentedByTab(textOf(lines, line)) {
			line++ // the library names the line before
		}
		d.problem(line, "%s", plainSyntax(message, textOf(lines, line)))
	}
	return d.err()
}

// textOf is a line by its number; empty where there is none.
func textOf(lines []string, number int) string {
	if number < 1 || number > len(lines) {
		return ""
	}
	return lines[number-1]
}

func indentedByTab(line string) bool {
	return strings.Contains(line[:len(line)-len(strings.TrimLeft(line, " \t"))], "\t")
}

func plainSyntax(message, line string) string {
	if found := twice.FindStringSubmatch(message); found != nil {
		return fmt.Sprintf("the key %s is here a second time; the first is in line %s. Keep one", found[1], found[2])
	}
	if found := noAnchor.FindStringSubmatch(message); found != nil {
		return fmt.Sprintf("*%s refers to an anchor &%s that the file does not have", found[1], found[1])
	}
	switch {
	case indentedByTab(line):
		return "a tab indents this line, and YAML allows spaces only"
	case message == "control characters are not allowed":
		return "holds a control character, which YAML does not allow"
	case message == "found character that cannot start any token":
		return "a value begins with a character that YAML reserves, such as @, ` or %; write the value in quotes"
	case strings.Contains(message, "did not find expected ',' or"), message == "did not find expected node content":
		return "a list or an object in brackets has no end, or lacks a comma"
	case message == "did not find expected key", strings.Contains(message, "did not find expected '-' indicator"):
		return "no YAML: a key or an item near this line is not indented like those above it"
	case message == "mapping values are not allowed in this context":
		return "no YAML: a second colon in one line, or a key that is indented too far; write a value with \": \" in quotes"
	case strings.Contains(message, "unexpected end of stream"), strings.Contains(message, "unexpected document indicator"):
		return "a text in quotes has no end"
	}
	return "no YAML: " + cmp.Or(message, "cannot be read")
}
