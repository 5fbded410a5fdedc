package printable

import (
	"errors"
	"strings"
)

// Rows is an error that has rows on purpose, with the texts of others made into lines.
type Rows string

func (r Rows) Error() string { return string(r) }

// HasRows marks an error as one that has rows on purpose.
func (Rows) HasRows() {}

// Message is the text of an error. It has the line feeds of errors.Join and of errors marked by HasRows, and no others. A file, its name or a cloud may
// have put one into any text.
func Message(err error) string {
	if _, has := err.(interface{ HasRows() }); has {
		return Escape(err.Error())
	}
	var inner []error
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	default:
		if next := errors.Unwrap(err); next != nil {
			inner = []error{next}
		}
	}
	text, separator := err.Error(), ""
	if joined(text, inner) {
		separator = "\n"
	}
	var out strings.Builder
	for i, e := range inner {
		before, after, found := strings.Cut(text, e.Error())
		if !found || e.Error() == "" {
			continue
		}
		if i == 0 || separator == "" {
			out.WriteString(Line(before))
		} else {
			out.WriteString(separator)
		}
		out.WriteString(Message(e))
		text = after
	}
	return out.String() + Line(text)
}

func joined(text string, inner []error) bool {
	return len(inner) > 1 && text == errors.Join(inner...).Error()
}
