// Package readme reads the commands of a Markdown document, for tests that run them as they stand.
package readme

import (
	"fmt"
	"regexp"
	"strings"
)

// paths are the variables that a block sets, because only its reader knows the paths.
var paths = regexp.MustCompile("^(DIR|CHART)=")

// Commands are the lines of the sh blocks of a section ("## NAME"), without comments. Each can run in a shell of its own: it begins with the
// paths that its block sets, with the given values. An error says that the section has no commands, or sets a path that is not given.
func Commands(text, name string, given map[string]string) ([]string, error) {
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
		set := ""
		for line := range strings.SplitSeq(strings.TrimSpace(block), "\n") {
			variable, _, _ := strings.Cut(line, "=")
			switch value, known := given[variable]; {
			case strings.HasPrefix(line, "#"):
			case !paths.MatchString(line):
				commands = append(commands, set+line)
			case !known:
				return nil, fmt.Errorf("the section %q sets %s, which is not given", name, variable)
			default:
				set += variable + "=" + value + "; "
			}
		}
	}
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

// BlockWith is the first code block of a section that has a text.
func BlockWith(text, name, has string) (string, error) {
	blocks, err := Blocks(text, name)
	if err != nil {
		return "", err
	}
	for _, block := range blocks {
		if strings.Contains(block, has) {
			return block, nil
		}
	}
	return "", fmt.Errorf("the section %q has no code block with %q", name, has)
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
