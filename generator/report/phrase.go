package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// phrase writes the value of a decision for people: "2 replicas", where a document has {"replicas":2}. A value of several lines keeps them.
func phrase(v any) string { return words(plain(v)) }

// parts are the phrases of an object's fields, or the phrase of any other value.
func parts(v any) []string {
	if fields, ok := plain(v).(map[string]any); ok && len(fields) > 0 {
		return fieldPhrases(fields)
	}
	return []string{phrase(v)}
}

// plain is a value as JSON has it, so that values are written alike before and after they are saved.
func plain(v any) any {
	content, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber() // 1000000 must not become 1e+06
	var result any
	if err := decoder.Decode(&result); err != nil {
		return fmt.Sprint(v)
	}
	return result
}

func words(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		if text := strings.TrimSpace(v); text != "" {
			return text
		}
		return "none"
	case bool:
		if v {
			return "yes"
		}
		return "no"
	case []any:
		return list(v)
	case map[string]any:
		if len(v) > 0 {
			return strings.Join(fieldPhrases(v), "; ")
		}
		return "none"
	}
	return fmt.Sprint(v)
}

func list(items []any) string {
	if len(items) == 0 {
		return "none"
	}
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = words(item)
	}
	return strings.Join(texts, ", ")
}

func fieldPhrases(fields map[string]any) []string {
	var parts []string
	if enabled, ok := fields["enabled"].(bool); ok { // the first thing to know
		parts = append(parts, map[bool]string{true: "enabled", false: "disabled"}[enabled])
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if _, isBool := fields[key].(bool); key == "enabled" && isBool {
			continue
		}
		if key == "volumeType" { // its name is among the parameters and in the reason; the ID is for programs
			continue
		}
		parts = append(parts, field(key, fields[key]))
	}
	return parts
}

// answers are the phrases of fields that are true or false.
var answers = map[string][2]string{
	"allowVolumeExpansion": {"volumes can grow", "volumes cannot grow"},
	"snapshotInUse":        {"of volumes in use without force", "of volumes in use with force"},
}

// nouns are the names of fields where the words of the key are not what people say.
var nouns = map[string]string{
	"parameters":        "parameters",
	"volumeBindingMode": "binding",
	"runAsUser":         "user",
	"cidrs":             "networks",
	"apiServerCIDRs":    "networks of the API server",
}

func field(key string, v any) string {
	if b, ok := v.(bool); ok {
		if answer, known := answers[key]; known {
			return answer[map[bool]int{true: 0, false: 1}[b]]
		}
		if b {
			return split(key)
		}
		return "no " + split(key)
	}
	if n, ok := v.(json.Number); ok && key == "replicas" {
		if n == "1" {
			return "1 replica"
		}
		return n.String() + " replicas"
	}
	name := cmp.Or(nouns[key], split(key))
	if fields, ok := v.(map[string]any); ok {
		return name + " " + pairs(fields)
	}
	return name + " " + words(v)
}

// pairs writes an object inside of another one, such as labels, as kubectl does.
func pairs(fields map[string]any) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := fields[key]
		if inner, ok := value.(map[string]any); ok {
			parts = append(parts, key+" ("+pairs(inner)+")")
			continue
		}
		text := fmt.Sprint(value)
		if items, ok := value.([]any); ok {
			text = list(items)
		}
		parts = append(parts, key+"="+text)
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// split writes the words of a key: "priorityClass" is "priority class", and "apiServerCIDRs" is "api server CIDRs".
func split(key string) string {
	var b strings.Builder
	runes := []rune(key)
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]) && runes[i+1] != 's')
		if begins {
			b.WriteByte(' ')
		}
		if acronym := i+1 < len(runes) && unicode.IsUpper(runes[i+1]) || i > 0 && unicode.IsUpper(runes[i-1]); unicode.IsUpper(r) && !acronym {
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}
