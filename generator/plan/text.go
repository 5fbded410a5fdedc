package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// checkTexts refuses, in every text a person configured, what no bundle may hold: a variable that nobody filled in, because nothing
// does so later; control characters, which not every reader of YAML takes; and a private key. False: there is a key, and nothing
// else may be said, because messages repeat what is wrong.
func (d *decider) checkTexts() bool {
	text, err := json.Marshal(map[string]any{"metadata": d.dist.Metadata, "spec": d.given})
	var config any
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		panic(err) // it was JSON a moment ago
	}
	var keys []string
	texts("", config, func(path, s string) {
		if strings.Contains(s, "PRIVATE KEY") {
			keys = append(keys, path+": holds a PRIVATE KEY, and the generator writes no secret")
		}
		if problem := unwritable(s); problem != "" && (path != caBundle || problem != controlCharacter) {
			d.problem("%s: %s", path, problem)
		}
	})
	if len(keys) > 0 {
		d.problems = keys
	}
	return len(keys) == 0
}

const controlCharacter = "holds a control character"

// unwritable says what a text holds that no bundle may, empty for nothing: YAML has no control characters, verification takes ${ for
// something that nobody filled in, and a private key is a secret.
func unwritable(s string) string {
	switch {
	case strings.Contains(s, "PRIVATE KEY"):
		return "holds a PRIVATE KEY"
	case strings.Contains(s, "${"):
		return "holds ${, as of a variable that nothing filled in"
	case strings.ContainsFunc(s, unicode.IsControl), !utf8.ValidString(s), strings.ContainsAny(s, "\ufeff\ufffe\uffff"):
		return controlCharacter
	}
	return ""
}

// texts yields every text of a document with its path, the keys of objects too, with their object's.
func texts(path string, value any, each func(path, text string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			each(path, key)
			texts(strings.TrimPrefix(path+"."+key, "."), v[key], each)
		}
	case []any:
		for i, e := range v {
			texts(item(path, i), e, each)
		}
	case string:
		each(path, v)
	}
}

// item is the path of a list's element.
func item(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
