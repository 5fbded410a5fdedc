// Package readme reads the commands of a Markdown document, for tests that run them as they stand.
package readme

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Commands are the lines of the sh blocks of a section ("## NAME"), without comments. An error says that the section has none.
func Commands(text, name string) ([]string, error) {
	body, err := section(text, name)
	if err != nil {
		return nil, err
	}
	var commands []string
	for i, part := range strings.Split(body, "```") {
		if i%2 == 0 {
			continue
		}
		block, isShell := strings.CutPrefix(part, "sh\n")
		if !isShell {
			return nil, fmt.Errorf("the section %q has a block that is not sh", name)
		}
		commands = append(commands, strings.Split(strings.TrimSpace(block), "\n")...)
	}
	// Each command runs in a shell of its own, so the caller gives it these.
	given := regexp.MustCompile("^(#|DIR=|CHART=)")
	commands = slices.DeleteFunc(commands, given.MatchString)
	if len(commands) == 0 {
		return nil, fmt.Errorf("the section %q has no commands", name)
	}
	return commands, nil
}

// Blocks are the indented code blocks of a section, without their indentation. An error says that the section has none.
func Blocks(text, name string) ([]string, error) {
	body, err := section(text, name)
	if err != nil {
		return nil, err
	}
	var blocks []string
	for _, paragraph := range strings.Split(body, "\n\n") {
		paragraph = strings.Trim(paragraph, "\n")
		indent := paragraph[:len(paragraph)-len(strings.TrimLeft(paragraph, " "))]
		if len(indent) >= 4 {
			blocks = append(blocks, strings.ReplaceAll(paragraph[len(indent):], "\n"+indent, "\n"))
		}
	}
	if len(blocks) == 0 {
		return nil, fmt.Errorf("the section %q has no code blocks", name)
	}
	return blocks, nil
}

var fenced = regexp.MustCompile("(?ms)^( *)```(\\w+)\n(.*?)^ *```$")

// Fenced are the fenced blocks of a language ("sh", "yaml") in a document. A block in a list loses the indentation of the list.
func Fenced(text, language string) []string {
	var blocks []string
	for _, found := range fenced.FindAllStringSubmatch(text, -1) {
		if found[2] == language {
			blocks = append(blocks, strings.TrimPrefix(strings.ReplaceAll("\n"+found[3], "\n"+found[1], "\n"), "\n"))
		}
	}
	return blocks
}

// section is the text below a heading of the second level.
func section(text, name string) (string, error) {
	_, rest, found := strings.Cut(text, "\n## "+name+"\n")
	if !found {
		return "", fmt.Errorf("there is no section %q", name)
	}
	body, _, _ := strings.Cut(rest, "\n## ")
	return body, nil
}
