package openstacksim

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The checks below follow the JSON schemas of Cinder and Nova for request bodies, with the same messages.

func invalid(field string, value any, complaint string) reply {
	return fault(http.StatusBadRequest, fmt.Sprintf("Invalid input for field/attribute %s. Value: %s. %s", field, bare(value), complaint))
}

// object is the only object in a body. With strict, it must have no other keys than the allowed ones.
func (c *call) object(name string, strict bool, allowed ...string) map[string]any {
	body := c.decode()
	inner, ok := body[name]
	if !ok {
		panic(fault(http.StatusBadRequest, "'"+name+"' is a required property"))
	}
	if c.service == blocks {
		if extra := unexpected(body, []string{name, "OS-SCH-HNT:scheduler_hints"}); extra != "" {
			panic(fault(http.StatusBadRequest, extra))
		}
	}
	o, ok := inner.(map[string]any)
	if !ok {
		panic(invalid(name, inner, python(inner)+" is not of type 'object'"))
	}
	if strict {
		if extra := unexpected(o, allowed); extra != "" {
			panic(invalid(name, c.raw(name), extra))
		}
	}
	return o
}

// unexpected is the message about keys that are not allowed, or "".
func unexpected(o map[string]any, allowed []string) string {
	extra := where(slices.Values(sortedKeys(o)), func(key string) bool { return !slices.Contains(allowed, key) })
	switch len(extra) {
	case 0:
		return ""
	case 1:
		return "Additional properties are not allowed ('" + extra[0] + "' was unexpected)"
	default:
		return "Additional properties are not allowed ('" + strings.Join(extra, "', '") + "' were unexpected)"
	}
}

// textOrNull checks a string that may be null; least is the smallest number of characters.
func textOrNull(body map[string]any, field string, least int) string {
	switch v := body[field].(type) {
	case nil:
		return ""
	case string:
		if utf8.RuneCountInString(v) < least {
			panic(invalid(field, v, python(v)+" is too short"))
		}
		if utf8.RuneCountInString(v) > 255 {
			panic(invalid(field, v, python(v)+" is too long"))
		}
		return v
	default:
		panic(invalid(field, v, python(v)+" is not of type 'string', 'null'"))
	}
}

// booleans are the spellings of true and false in the schemas of Cinder.
var booleans = []any{
	true, "True", "TRUE", "true", "1", "ON", "On", "on", "YES", "Yes", "yes", "y", "t",
	false, "False", "FALSE", "false", "0", "OFF", "Off", "off", "NO", "No", "no", "n", "f",
}

var digits = regexp.MustCompile(`^[0-9]+$`)

// size reads a size in GiB; 0 if it is absent or null.
func size(field string, v any) int {
	var n json.Number
	switch x := v.(type) {
	case nil:
		return 0
	case string:
		if !digits.MatchString(x) {
			panic(invalid(field, x, python(x)+" does not match '^[0-9]+$'"))
		}
		n = json.Number(x)
	case json.Number:
		n = x
	default:
		panic(invalid(field, v, python(v)+" is not of type 'integer', 'string', 'null'"))
	}
	i, err := n.Int64()
	switch {
	case err != nil:
		panic(invalid(field, n, n.String()+" is not of type 'integer', 'string', 'null'"))
	case i < 1:
		panic(invalid(field, n, n.String()+" is less than the minimum of 1"))
	case i > 0x7fffffff:
		panic(invalid(field, n, n.String()+" is greater than the maximum of 2147483647"))
	}
	return int(i)
}

var metadataKey = regexp.MustCompile(`^[a-zA-Z0-9-_:. /]{1,255}$`)

// metadataOf checks metadata; null means empty. types is the name of the type in the schema.
func metadataOf(v any, types string) map[string]string {
	if v == nil {
		return map[string]string{}
	}
	m, ok := v.(map[string]any)
	if !ok {
		panic(invalid("metadata", v, python(v)+" is not of type "+types))
	}
	for _, k := range sortedKeys(m) {
		if !metadataKey.MatchString(k) {
			panic(invalid("metadata", v, python(k)+" does not match any of the regexes: '^[a-zA-Z0-9-_:. /]{1,255}$'"))
		}
		s, ok := m[k].(string)
		if !ok {
			panic(invalid(k, m[k], python(m[k])+" is not of type 'string'"))
		}
		if utf8.RuneCountInString(s) > 255 {
			panic(invalid(k, s, python(s)+" is too long"))
		}
	}
	return stringMap(m)
}

// optionalUUID checks an ID that may be absent, null or a UUID.
func optionalUUID(body map[string]any, field string) string {
	v, ok := body[field]
	if !ok || v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok || !isUUID(s) {
		panic(invalid(field, v, python(v)+" is not valid under any of the given schemas"))
	}
	return s
}

// name255 checks a name or description, trimmed and measured as in Cinder.
func name255(body map[string]any, fields ...string) {
	for _, field := range fields {
		switch v := body[field].(type) {
		case nil:
		case string:
			if n := utf8.RuneCountInString(strings.TrimSpace(v)); n > 255 {
				panic(fault(http.StatusBadRequest, fmt.Sprintf("Invalid input received: %s has %d characters, more than 255.", field, n)))
			}
		default:
			panic(invalid(field, v, python(v)+" is not of type 'string', 'null'"))
		}
	}
}

// optional is a trimmed string, or nil for null.
func optional(v any) *string {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	s = strings.TrimSpace(s)
	return &s
}

func stringMap(m map[string]any) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = bare(v)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
