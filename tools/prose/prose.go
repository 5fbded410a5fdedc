// Package prose checks the English that people read in this repository, and the names in its Go code.
//
// It reads Markdown, Go comments and Go string constants (errors, logs, help) and reports rejected words and sentences that are too long. It
// reports identifiers that contain rejected words. The file words.txt lists those words. A baseline per file holds the number of findings
// that are known; the number may only fall.
package prose

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// MaxWords is the most words that a sentence may have. A code span counts as one word.
const MaxWords = 25

// Rule names what a finding is about; the baseline counts each rule on its own.
type Rule string

// The rules.
const (
	Word    Rule = "word"    // a rejected word in a text
	Length  Rule = "length"  // a sentence of more than MaxWords words
	Name    Rule = "name"    // an identifier with a rejected word
	Passive Rule = "passive" // a suggestion, which no baseline counts
)

// Finding is one place that a rule rejects.
type Finding struct {
	File    string // relative to the root of the repository, with slashes
	Line    int
	Rule    Rule
	Text    string // the sentence or the identifier
	Problem string // what the rule rejects, and what to write instead
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s\n\t%s", f.File, f.Line, f.Rule, f.Problem, f.Text)
}

// text is a paragraph, a comment or a string constant: something that sentences cannot cross.
type text struct {
	line    int // of its first character
	content string
}

// Checker applies the words of words.txt.
type Checker struct {
	words words
	// Suggest adds findings of the rule Passive.
	Suggest bool
}

// NewChecker reads words.txt. It fails if that file is malformed.
func NewChecker() (*Checker, error) {
	w, err := parseWords(wordsFile)
	return &Checker{words: w}, err
}

// Markdown checks a Markdown file.
func (c *Checker) Markdown(file string, content []byte) []Finding {
	return c.texts(file, markdown(string(content), 1))
}

// texts checks the sentences of texts.
func (c *Checker) texts(file string, all []text) []Finding {
	var findings []Finding
	for _, t := range all {
		for _, s := range sentences(t) {
			findings = append(findings, c.sentence(file, s)...)
		}
	}
	return findings
}

func (c *Checker) sentence(file string, s sentence) []Finding {
	var findings []Finding
	add := func(r Rule, problem string) {
		findings = append(findings, Finding{File: file, Line: s.line, Rule: r, Text: s.text, Problem: problem})
	}
	for _, m := range c.words.inText(s.plain) {
		add(Word, m.String())
	}
	if s.words > MaxWords {
		add(Length, fmt.Sprintf("the sentence has %d words; write sentences of at most %d", s.words, MaxWords))
	}
	if c.Suggest {
		for _, found := range passive.FindAllString(s.plain, -1) {
			add(Passive, fmt.Sprintf("%q looks like the passive voice; consider naming the actor", found))
		}
	}
	return findings
}

// Sort orders findings by file, line and rule.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), strings.Compare(string(a.Rule), string(b.Rule)))
	})
}
