package prose

import (
	"regexp"
	"strings"
)

var (
	listItem    = regexp.MustCompile(`^\s*([-*+]|\d+[.)])\s+`)
	indented    = regexp.MustCompile(`^(\t| {4})`)
	heading     = regexp.MustCompile(`^#+\s`)
	htmlComment = regexp.MustCompile(`(?s)<!--.*?-->`)
	fence       = regexp.MustCompile("^\\s*(```|~~~)")
)

// markdown splits Markdown into paragraphs, list items, headings and table cells. It leaves out code blocks and HTML comments.
func markdown(content string, line int) []text {
	content = htmlComment.ReplaceAllStringFunc(content, func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
	b := blocks{}
	code, inList := false, false
	for i, l := range strings.Split(content, "\n") {
		at := line + i
		switch {
		case fence.MatchString(l):
			b.end()
			code = !code
		case code:
		case strings.TrimSpace(l) == "":
			b.end()
		case listItem.MatchString(l):
			b.end()
			inList = true
			b.add(at, listItem.ReplaceAllString(l, ""))
		// An indented block is code, unless it continues a list item. There, code is indented twice.
		case indented.MatchString(l) && !b.open() && (!inList || strings.HasPrefix(l, "       ")):
		case strings.HasPrefix(strings.TrimSpace(l), "|"):
			b.end()
			for _, cell := range strings.Split(strings.Trim(strings.TrimSpace(l), "|"), "|") {
				b.add(at, cell)
				b.end()
			}
		case heading.MatchString(l):
			b.end()
			b.add(at, strings.TrimLeft(l, "# "))
			b.end()
			inList = false
		default:
			inList = inList && (b.open() || strings.HasPrefix(l, " "))
			b.add(at, strings.TrimPrefix(l, "> "))
		}
	}
	b.end()
	return b.all
}

// blocks collects texts line by line.
type blocks struct {
	all   []text
	line  int
	lines []string
}

func (b *blocks) open() bool { return len(b.lines) > 0 }

func (b *blocks) add(line int, content string) {
	if !b.open() {
		b.line = line
	}
	b.lines = append(b.lines, content)
}

func (b *blocks) end() {
	if b.open() {
		b.all = append(b.all, text{line: b.line, content: strings.Join(b.lines, "\n")})
	}
	b.lines = nil
}
