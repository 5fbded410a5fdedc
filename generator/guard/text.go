package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// fromTo says what a value was and is. Of texts with several lines it names the lines that differ.
func fromTo(was, is any) string {
	was, is = plainJSON(was), plainJSON(is)
	before, isText := was.(string)
	after, stays := is.(string)
	if !isText || !stays || !strings.Contains(before+after, "\n") {
		from, to := text(was), text(is)
		if from == to { // both are nothing, in two forms
			from, to = form(was), form(is)
		}
		return "from " + from + " to " + to
	}
	a, b := lines(before), lines(after)
	missing := func(from, in []string) []string {
		there := map[string]bool{}
		for _, line := range in {
			there[line] = true
		}
		return slices.DeleteFunc(slices.Clone(from), func(line string) bool { return there[line] })
	}
	return "from " + text(missing(a, b)) + " to " + text(missing(b, a))
}

// form distinguishes what is not there from what is there and empty.
func form(v any) string {
	if v == nil {
		return "not set"
	}
	text, _ := json.Marshal(v)
	return string(text)
}

func lines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }

// longest is how many characters of a value one line shows. The JSON form holds it all.
const longest = 160

// text is a value on one line, as short as it can be read.
func text(v any) string {
	s := []rune(whole(plainJSON(v)))
	if len(s) > longest {
		return string(s[:longest]) + "…"
	}
	return string(s)
}

func whole(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		if v == "" {
			return "none"
		}
		return v
	case []string:
		if len(v) == 0 {
			return "none"
		}
		return strings.Join(v, "; ")
	case []any:
		if len(v) == 0 {
			return "none"
		}
		texts := make([]string, len(v))
		for i, item := range v {
			texts[i] = whole(item)
		}
		return strings.Join(texts, ", ")
	}
	if m, isMap := v.(map[string]any); isMap && flat(m) {
		var texts []string
		for _, key := range slices.Sorted(maps.Keys(m)) {
			texts = append(texts, key+"="+whole(m[key]))
		}
		return cmp.Or(strings.Join(texts, ", "), "none")
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// flat is whether no value of an object is an object or a list.
func flat(m map[string]any) bool {
	for _, v := range m {
		switch v.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return true
}

// difference is one value of a configuration that is not what it was.
type difference struct {
	path      string
	old, next any
}

// differences walks two documents in the types of JSON and gives the smallest parts that differ, in the order of their paths.
func differences(path string, old, next any) []difference {
	if equal(old, next) {
		return nil
	}
	before, object := old.(map[string]any)
	after, still := next.(map[string]any)
	if !object && old != nil || !still && next != nil || !object && !still {
		return []difference{{path, old, next}}
	}
	var all []difference
	for _, key := range fieldNames(before, after) {
		all = append(all, differences(path+"."+key, before[key], after[key])...)
	}
	return all
}

// fieldsOf are the fields of an object by their keys in a document, without those that a document leaves out; false: it is no object.
func fieldsOf(value any) (map[string]any, bool) {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	fields := map[string]any{}
	switch v.Kind() {
	case reflect.Map:
		for _, key := range v.MapKeys() {
			fields[key.String()] = v.MapIndex(key).Interface()
		}
		return fields, !v.IsNil()
	case reflect.Struct:
		for i := range v.NumField() {
			name, option, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if name != "-" && (option == "" || !isEmpty(v.Field(i))) {
				fields[name] = v.Field(i).Interface()
			}
		}
		return fields, true
	}
	return nil, false
}

func isEmpty(v reflect.Value) bool {
	return v.IsZero() || (v.Kind() == reflect.Map || v.Kind() == reflect.Slice) && v.Len() == 0
}

func fieldNames(a, b map[string]any) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }

func plainJSON(v any) any {
	var plain any
	if b, err := json.Marshal(v); err == nil {
		_ = json.Unmarshal(b, &plain)
	}
	return plain
}
