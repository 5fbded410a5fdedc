package prose

import (
	"regexp"
	"strings"
	"unicode"
)

// sentence is one sentence of a text.
type sentence struct {
	line  int
	text  string // as it is written, on one line
	plain string // with each code span and link target taken out
	words int
}

var (
	codeSpan = regexp.MustCompile("`+[^`]+`+")
	linkEnd  = regexp.MustCompile(`\]\([^)\s]*\)`)
	address  = regexp.MustCompile(`https?://[^\s)>]+`)
	// A full stop, the closing marks after it, and white space.
	sentenceEnd = regexp.MustCompile(`[.!?]["')\]*_]*\s+`)
	spaces      = regexp.MustCompile(`\s+`)
	abbreviated = regexp.MustCompile(`(?i)(^|[\s(])(e\.g|i\.e|etc|vs|cf|no|approx|incl)\.$`)
	// A form of "be", an optional adverb, and a past participle: enough for a suggestion.
	passive = regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|being)\s+(not\s+|never\s+|\w+ly\s+)?(\w+ed|made|done|kept|held|given|taken|found|told|left|sent|read|written|shown|known|seen|said|built|lost|put|set)\b`)
)

// codeWord stands for a code span. It has no letters, so no rule matches it, and countWords counts it.
const codeWord = "0"

// sentences splits a text. Line numbers are those of the sentence's first character.
func sentences(t text) []sentence {
	// The same length keeps offsets, and so line numbers, right.
	masked := maskAll(t.content, codeSpan, address)
	masked = linkEnd.ReplaceAllStringFunc(masked, func(s string) string { return "]" + strings.Repeat(" ", len(s)-1) })
	var all []sentence
	start := 0
	add := func(end int) {
		plain := strings.TrimSpace(spaces.ReplaceAllString(masked[start:end], " "))
		if plain != "" {
			lead := len(masked[start:end]) - len(strings.TrimLeftFunc(masked[start:end], unicode.IsSpace))
			all = append(all, sentence{
				line:  t.line + strings.Count(t.content[:start+lead], "\n"),
				text:  strings.TrimSpace(spaces.ReplaceAllString(t.content[start:end], " ")),
				plain: plain, words: countWords(plain),
			})
		}
		start = end
	}
	for _, at := range sentenceEnd.FindAllStringIndex(masked, -1) {
		if abbreviated.MatchString(masked[start : at[0]+1]) {
			continue
		}
		add(at[1])
	}
	add(len(masked))
	return all
}

// maskAll replaces each match by one word of the same length in bytes.
func maskAll(s string, patterns ...*regexp.Regexp) string {
	for _, p := range patterns {
		s = p.ReplaceAllStringFunc(s, func(match string) string {
			lines := strings.Count(match, "\n")
			return codeWord + strings.Repeat("0", len(match)-1-lines) + strings.Repeat("\n", lines)
		})
	}
	return s
}

// countWords counts what has a letter or a digit.
func countWords(plain string) (n int) {
	for _, field := range strings.Fields(plain) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}
