package worktree

import (
	"bytes"
	"fmt"
	"strings"
)

// around is how many unchanged lines stand before and after a change.
const around = 3

// maxTable bounds the memory of one comparison; longer files are shown as replaced.
const maxTable = 16 << 20

// Diff is the change as a unified diff, that patch(1) and people read.
func (c Change) Diff() string {
	from, to := "a/"+c.Path, "b/"+c.Path
	if c.Old == nil {
		from = "/dev/null"
	}
	if c.New == nil {
		to = "/dev/null"
	}
	lines := compare(split(c.Old), split(c.New))
	var b strings.Builder
	fmt.Fprintf(&b, "--- %s\n+++ %s\n", from, to)
	for _, h := range hunks(lines) {
		h.write(&b, lines)
	}
	return b.String()
}

// line is one line of a comparison: ' ' in both, '-' only before, '+' only after.
type line struct {
	op   byte
	text string
}

// split keeps the line ends, so that a missing last one shows.
func split(content []byte) []string {
	var lines []string
	for _, l := range bytes.SplitAfter(content, []byte("\n")) {
		if len(l) > 0 {
			lines = append(lines, string(l))
		}
	}
	return lines
}

// compare finds the longest common subsequence of what is left after the common beginning and end.
func compare(a, b []string) []line {
	var head, tail []line
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, line{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		tail = append(tail, line{' ', a[len(a)-1]})
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	lines := append(head, middle(a, b)...)
	for i := len(tail) - 1; i >= 0; i-- {
		lines = append(lines, tail[i])
	}
	return lines
}

func middle(a, b []string) []line {
	var lines []line
	if len(a)*len(b) > maxTable {
		for _, text := range a {
			lines = append(lines, line{'-', text})
		}
		for _, text := range b {
			lines = append(lines, line{'+', text})
		}
		return lines
	}
	common := make([][]int32, len(a)+1) // common[i][j]: the longest of a[i:] and b[j:]
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			lines = append(lines, line{' ', a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[i+1][j] >= common[i][j+1]:
			lines = append(lines, line{'-', a[i]})
			i++
		default:
			lines = append(lines, line{'+', b[j]})
			j++
		}
	}
	return lines
}

// hunk is the lines [from, to) of a comparison, and the line numbers where it begins in either file.
type hunk struct{ from, to, oldLine, newLine int }

func hunks(lines []line) []hunk {
	var found []hunk
	for i, l := range lines {
		if l.op == ' ' {
			continue
		}
		from, to := max(i-around, 0), min(i+1+around, len(lines))
		if n := len(found); n > 0 && from <= found[n-1].to {
			found[n-1].to = to
		} else {
			found = append(found, hunk{from: from, to: to})
		}
	}
	oldLine, newLine, at := 1, 1, 0
	for i := range found {
		for ; at < found[i].from; at++ {
			if lines[at].op != '+' {
				oldLine++
			}
			if lines[at].op != '-' {
				newLine++
			}
		}
		found[i].oldLine, found[i].newLine = oldLine, newLine
	}
	return found
}

func (h hunk) write(b *strings.Builder, lines []line) {
	var olds, news int
	for _, l := range lines[h.from:h.to] {
		if l.op != '+' {
			olds++
		}
		if l.op != '-' {
			news++
		}
	}
	fmt.Fprintf(b, "@@ -%s +%s @@\n", span(h.oldLine, olds), span(h.newLine, news))
	for _, l := range lines[h.from:h.to] {
		b.WriteByte(l.op)
		b.WriteString(l.text)
		if !strings.HasSuffix(l.text, "\n") {
			b.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

// span is a range of lines as diff(1) writes it; an empty one counts from the line before it.
func span(first, count int) string {
	switch count {
	case 0:
		return fmt.Sprintf("%d,0", first-1)
	case 1:
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, count)
}
