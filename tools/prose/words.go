package prose

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

//go:embed words.txt
var wordsFile string

// wordRule is one line of words.txt.
type wordRule struct {
	where   string   // text, name, both, identifier or permitted
	forms   []string // lower case
	instead string
	pattern *regexp.Regexp
}

type words []wordRule

// parseWords reads words.txt, whose comment describes the format.
func parseWords(content string) (words, error) {
	var all words
	n := 0
	for line := range strings.Lines(content) {
		n++
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "|")
		if len(fields) != 3 {
			return nil, fmt.Errorf("words.txt:%d: want three fields separated by |, got %d", n, len(fields))
		}
		r := wordRule{where: strings.TrimSpace(fields[0]), instead: strings.TrimSpace(fields[2])}
		if !slices.Contains([]string{"text", "name", "both", "identifier", "permitted"}, r.where) {
			return nil, fmt.Errorf("words.txt:%d: the first field %q is not text, name, both, identifier or permitted", n, r.where)
		}
		var quoted []string
		for _, form := range strings.Split(fields[1], ",") {
			form = strings.ToLower(strings.TrimSpace(form))
			if form == "" || r.instead == "" {
				return nil, fmt.Errorf("words.txt:%d: an empty word or replacement", n)
			}
			r.forms = append(r.forms, form)
			quoted = append(quoted, strings.ReplaceAll(regexp.QuoteMeta(form), " ", `\s+`))
		}
		r.pattern = regexp.MustCompile(`(?i)\b(` + strings.Join(quoted, "|") + `)\b`)
		all = append(all, r)
	}
	return all, nil
}

// inText finds the rejected words of a sentence.
func (w words) inText(sentence string) []match {
	var found []match
	for _, r := range w {
		if r.where != "text" && r.where != "both" {
			continue
		}
		for _, m := range r.pattern.FindAllString(sentence, -1) {
			found = append(found, match{m, r})
		}
	}
	return found
}

// inName finds the rejected words of an identifier that is split into lower-case words.
func (w words) inName(parts []string) []match {
	var found []match
	name := strings.Join(parts, " ")
	for _, r := range w {
		switch {
		case r.where == "identifier" && slices.Contains(r.forms, name):
			found = append(found, match{name, r})
		case r.where == "name" || r.where == "both":
			if m := r.pattern.FindString(name); m != "" {
				found = append(found, match{m, r})
			}
		}
	}
	return found
}
