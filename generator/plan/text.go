package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
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
		if strings.Contains(s, "${") {
			d.problem("%s: holds ${, as of a variable that nothing filled in", path)
		}
		if path != caBundle && strings.ContainsFunc(s, unicode.IsControl) {
			d.problem("%s: holds a control character", path)
		}
	})
	if len(keys) > 0 {
		d.problems = keys
	}
	return len(keys) == 0
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
