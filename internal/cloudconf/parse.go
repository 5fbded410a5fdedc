package cloudconf

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// SyntaxError says where a file does not follow the dialect.
type SyntaxError struct {
	Line    int
	Message string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Message) }

// mostLines are the sections and keys of a file. Each is compared with those before it. The driver has 60 names, and a cloud at most 1,000 zones.
const mostLines = 5_000

// Parse reads one file. If a key occurs twice in a section, or in two sections of the same name, the later value counts.
func Parse(src []byte) (*File, error) {
	src = bytes.TrimPrefix(src, []byte("\ufeff"))
	for line, rest := 1, src; len(rest) > 0; line++ {
		text, more, _ := bytes.Cut(rest, []byte("\n"))
		if !utf8.Valid(text) {
			return nil, &SyntaxError{line, "not valid UTF-8"}
		}
		if bytes.ContainsRune(text, 0) {
			return nil, &SyntaxError{line, "contains a NUL character"}
		}
		rest = more
	}
	r := &reader{src: []rune(string(src)), line: 1}
	f := &File{}
	var current *Section
	for n := 1; ; n++ {
		if r.skip(true); r.end() {
			return f, nil
		}
		line := r.line
		var err error
		switch c := r.peek(); {
		case n > mostLines:
			err = r.errorf("more than %d sections and keys, which no cloud.conf has", mostLines)
		case c == '[':
			var name, sub string
			if name, sub, err = r.header(); err == nil {
				current = f.section(name, sub, line)
			}
		case !isLetter(c):
			err = r.errorf("unexpected character %q; a line is a [section], a key or a comment", c)
		case current == nil:
			err = r.errorf("a key before the first [section]")
		default:
			var k Key
			if k, err = r.key(); err == nil {
				current.put(k)
			}
		}
		if err != nil {
			return nil, err
		}
	}
}

// reader walks a file's characters.
type reader struct {
	src  []rune
	pos  int
	line int
}

func (r *reader) end() bool { return r.pos >= len(r.src) }

func (r *reader) peek() rune {
	if r.end() {
		return -1
	}
	return r.src[r.pos]
}

func (r *reader) next() rune {
	c := r.peek()
	if c == '\n' {
		r.line++
	}
	r.pos++
	return c
}

func (r *reader) errorf(format string, args ...any) error {
	return &SyntaxError{r.line, fmt.Sprintf(format, args...)}
}

// skip passes blanks and comments. With newlines, it also passes line ends.
func (r *reader) skip(newlines bool) {
	for {
		switch c := r.peek(); {
		case isBlank(c), newlines && c == '\n':
			r.next()
		case c == '#', c == ';':
			for !r.end() && r.peek() != '\n' {
				r.next()
			}
		default:
			return
		}
	}
}

func (r *reader) name() string {
	start := r.pos
	for c := r.peek(); isLetter(c) || isDigit(c) || c == '-'; c = r.peek() {
		r.next()
	}
	return string(r.src[start:r.pos])
}

// header reads [Name] or [Name "sub"]. Only a comment may follow on the line.
func (r *reader) header() (name, sub string, err error) {
	r.next()
	r.skip(false)
	if !isLetter(r.peek()) {
		return "", "", r.errorf("a section name must begin with a letter")
	}
	name = r.name()
	r.skip(false)
	if r.peek() == '"' {
		if sub, err = r.subsection(); err != nil {
			return "", "", err
		}
		r.skip(false)
	}
	if r.peek() != ']' {
		return "", "", r.errorf("section %s: expected ] or a quoted subsection", name)
	}
	r.next()
	r.skip(false)
	if !r.end() && r.peek() != '\n' {
		return "", "", r.errorf("section %s: only a comment may follow ] on its line", name)
	}
	return name, sub, nil
}

func (r *reader) subsection() (string, error) {
	var b strings.Builder
	r.next()
	for {
		switch c := r.peek(); c {
		case -1, '\n':
			return "", r.errorf("the closing quote of a subsection is missing")
		case '"':
			r.next()
			if b.Len() == 0 {
				return "", r.errorf("the name of a subsection is empty")
			}
			return b.String(), nil
		case '\\':
			r.next()
			if c = r.peek(); c != '\\' && c != '"' {
				return "", r.errorf(`in a subsection only \\ and \" may follow a backslash`)
			}
			fallthrough
		default:
			b.WriteRune(r.next())
		}
	}
}

func (r *reader) key() (Key, error) {
	k := Key{Line: r.line, Name: r.name()}
	r.skip(false)
	switch r.peek() {
	case -1, '\n':
		k.Bare = true
		return k, nil
	case '=':
		r.next()
	default:
		return k, r.errorf("key %s: expected =", k.Name)
	}
	for isBlank(r.peek()) {
		r.next()
	}
	value, err := r.value(k.Name)
	k.Value = value
	return k, err
}

// value reads to the end of the line or to a comment. Quoted and unquoted parts may alternate; blanks at the end count only in
// quotes. value drops carriage returns, so that files from Windows read alike.
func (r *reader) value(key string) (string, error) {
	var b strings.Builder
	quoted, keep := false, 0 // keep: the length of b without unquoted blanks at the end
	for {
		c := r.peek()
		if !quoted && (c == -1 || c == '\n' || c == '#' || c == ';') {
			return b.String()[:keep], nil
		}
		switch {
		case c == -1 || c == '\n':
			return "", r.errorf("key %s: the closing quote is missing", key)
		case c == '"':
			quoted = !quoted
			r.next()
		case c == '\\':
			r.next()
			if err := r.escape(&b, quoted, key); err != nil {
				return "", err
			}
		case c == '\r':
			r.next()
			continue
		default:
			b.WriteRune(r.next())
			if !quoted && isBlank(c) {
				continue
			}
		}
		keep = b.Len()
	}
}

// escape reads the character after a backslash in a value.
func (r *reader) escape(b *strings.Builder, quoted bool, key string) error {
	if !quoted && r.peek() == '\r' {
		r.next()
	}
	c := r.peek()
	switch {
	case c == '"', quoted && c == '\\':
		b.WriteRune(c)
	case quoted && c == 'n':
		b.WriteByte('\n')
	case quoted && c == 't':
		b.WriteByte('\t')
	case !quoted && c == '\n': // joins the lines
	case quoted:
		return r.errorf(`key %s: in quotes only \\ \" \n \t may follow a backslash`, key)
	default:
		return r.errorf(`key %s: a backslash outside quotes; write the value in double quotes and double the backslash`, key)
	}
	r.next()
	return nil
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' || c == '\r' }

func isLetter(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf && unicode.IsLetter(c)
}

func isDigit(c rune) bool {
	return '0' <= c && c <= '9' || c >= utf8.RuneSelf && unicode.IsDigit(c)
}
