package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// most is how many lines a first reader reads. make prints two more, of its commands.
const most = 58

// screen is what the demo prints.
type screen struct {
	to      io.Writer
	verbose bool
	lines   int
	warned  []warning
}

// warning is a warning of the generator, and how often it came.
type warning struct {
	text  string
	times int
}

func (s *screen) printf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.lines += strings.Count(text, "\n")
	io.WriteString(s.to, text) //nolint:errcheck // a terminal that is gone
}

func (s *screen) heading(number, text string) { s.printf("\n== %s. %s\n", number, text) }

// details is the screen for what only a reader of everything reads.
func (s *screen) details() *screen {
	if s.verbose {
		return s
	}
	return &screen{to: io.Discard}
}

// warn keeps the warnings of a program. It leaves out the one that the demo itself has said: the simulated cloud has no TLS.
func (s *screen) warn(stderr []byte) {
	for line := range bytes.Lines(stderr) {
		text, is := strings.CutPrefix(strings.TrimSpace(string(line)), "Warning: ")
		if !is || strings.Contains(text, "is not encrypted") {
			continue
		}
		if i := slices.IndexFunc(s.warned, func(w warning) bool { return w.text == text }); i >= 0 {
			s.warned[i].times++
		} else {
			s.warned = append(s.warned, warning{text, 1})
		}
	}
}

// warnings prints each warning once.
func (s *screen) warnings() {
	for _, w := range s.warned {
		s.printf("warning in %d bundles: %s\n", w.times, w.text)
	}
}

// fits is an error if a first reader would not read so much.
func (s *screen) fits() error {
	if !s.verbose && s.lines > most {
		return fmt.Errorf("the demo printed %d lines, and should print at most %d", s.lines, most)
	}
	return nil
}
