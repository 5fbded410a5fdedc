// Package printable writes out, as \x1b or \u202e, the characters with which a text could steer a terminal or hide what it says. Names
// and messages that come from a cloud or from a file pass through it before a person reads them.
package printable

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Escape is a text without control characters other than line feed and tab, and without invalid UTF-8. It has no characters that reorder a line or
// show nothing.
func Escape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0]) // a terminal of 8 bits takes 0x9b for the begin of a sequence
		case !steers(r):
			b.WriteString(s[:size])
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[size:]
	}
	return b.String()
}

// Line is Escape for what must stay on one line.
func Line(s string) string { return strings.NewReplacer("\n", " ", "\t", " ").Replace(Escape(s)) }

// Lines are items of a message, each of them as one line. The author of a file must not begin a line of his own.
func Lines(separator string, items []string) string {
	lines := make([]string, len(items))
	for i, item := range items {
		lines[i] = Line(item)
	}
	return strings.Join(lines, separator)
}

// JSON is a JSON text without the characters of four digits that Escape writes out, or that a reader of YAML refuses. All of them are in strings,
// where an escape is the same text.
func JSON(text []byte) []byte {
	escaped := func(r rune) bool { return r > '~' && r <= 0xffff && steers(r) || r == 0xfffe || r == 0xffff }
	if !bytes.ContainsFunc(text, escaped) {
		return text
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		if escaped(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.Bytes()
}

// Markdown is Line for a text in a paragraph or a table of Markdown. No name becomes a link, a mention, markup or HTML.
func Markdown(s string) string { return marks.Replace(Line(s)) }

// Code is Line for a text between two backquotes of Markdown.
func Code(s string) string { return strings.ReplaceAll(Line(s), "`", "'") }

var marks = strings.NewReplacer(
	"\\", "\\\\", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "|", "\\|", "~", "\\~", "#", "\\#", "!", "\\!",
	"<", "&lt;", "&", "&amp;", "@", "&#64;", "://", "&#58;//", "www.", "www&#46;", // addresses become links without any markup
)

func steers(r rune) bool {
	if r < 0x80 {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7f
	}
	// C1; what has a direction, breaks a line, or takes a place and shows nothing. U+2800 is a blank of Braille.
	return r <= 0x9f || r == 0x2800 || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Writer passes on what Escape makes of a text. It may be used by several goroutines.
type Writer struct {
	lock sync.Mutex
	out  io.Writer
	rest []byte // the begin of a character whose end has not been written
}

// To is a Writer that writes to out.
func To(out io.Writer) *Writer { return &Writer{out: out} }

func (w *Writer) Write(p []byte) (int, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	text := append(w.rest, p...)
	end := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if utf8.RuneStart(text[len(text)-back]) {
			if !utf8.FullRune(text[len(text)-back:]) {
				end = len(text) - back
			}
			break
		}
	}
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := io.WriteString(w.out, Escape(string(text[:end]))); err != nil {
		return 0, err
	}
	return len(p), nil
}
