package printable

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

// Mark begins each further row of a folded text. No row of a report begins with it, so that no text of others reads like the report.
const Mark = "|  "

// Folded is a text in rows that no terminal of so many columns breaks once more. Each row but the first begins with the margin and Mark. The
// caller writes the first one behind at most as many columns.
func Folded(margin, text string, columns int) string {
	var rows []string
	for line := range strings.SplitSeq(strings.ReplaceAll(Escape(text), "\t", " "), "\n") {
		rows = append(rows, Fold(line, columns-len(margin)-len(Mark))...)
	}
	return strings.Join(rows, "\n"+margin+Mark)
}

// Fold breaks a line into rows of at most so many columns: between words, and inside a word that is longer than a row.
func Fold(line string, columns int) (rows []string) {
	line = strings.TrimRight(line, " ")
	for {
		row := prefix(line, columns)
		if len(row) == len(line) {
			return append(rows, line)
		}
		if blank := strings.LastIndexByte(row, ' '); line[len(row)] != ' ' && strings.Trim(row[:max(blank, 0)], " ") != "" {
			row = row[:blank]
		}
		rows, line = append(rows, strings.TrimRight(row, " ")), strings.TrimLeft(line[len(row):], " ")
	}
}

// prefix is the longest begin of a line that takes at most so many columns, and at least one character.
func prefix(line string, columns int) string {
	used := 0
	for i, r := range line {
		used += most(r)
		if used > columns && i > 0 {
			return line[:i]
		}
	}
	return line
}

// AtMost is how many columns a text takes on any terminal. They differ in the letters that are neither narrow nor wide, and in new ones.
func AtMost(s string) int {
	n := 0
	for _, r := range s {
		n += most(r)
	}
	return n
}

func most(r rune) int {
	if r < 0x80 {
		return 1
	}
	return 2
}

// Columns is how many columns most terminals give to a text.
func Columns(s string) int {
	n := 0
	for _, r := range s {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.In(r, unicode.Mn, unicode.Me): // drawn over the character before it
		case kind == width.EastAsianWide, kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}
