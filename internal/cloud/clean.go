package cloud

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// LongestText is how many bytes of a text that a cloud sends are kept. Cinder's and Nova's own texts have at most 255 characters.
const LongestText = 1 << 10

// Clean makes a text that a cloud sends fit for a log, an error or a terminal: every control character, and every invisible one that
// changes the direction or the look of what follows, becomes U+FFFD, line ends become blanks, and what is longer than LongestText is
// cut.
func Clean(s string) string {
	if len(s) > LongestText {
		end := LongestText - len("…")
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\t', r == '\u2028', r == '\u2029':
			return ' '
		case unicode.In(r, unicode.Cc, unicode.Cf):
			return utf8.RuneError
		}
		return r
	}, s)
}

// CleanStrings does what Clean does to every string, and to every key of a map, in what an answer was decoded into; not to those in an any, into which nothing here is decoded.
func CleanStrings(into any) {
	if into != nil {
		cleanValue(reflect.ValueOf(into))
	}
}

func cleanValue(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			cleanValue(v.Elem())
		}
	case reflect.String:
		if clean := Clean(v.String()); v.CanSet() && clean != v.String() {
			v.SetString(clean)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			cleanValue(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 { // JSON that is decoded later
			return
		}
		for i := range v.Len() {
			cleanValue(v.Index(i))
		}
	case reflect.Map:
		cleanMap(v)
	}
}

// cleanMap puts cleaned copies of the entries in the place of those that need it.
func cleanMap(m reflect.Value) {
	for _, key := range m.MapKeys() {
		newKey, value := reflect.New(key.Type()).Elem(), reflect.New(m.Type().Elem()).Elem()
		newKey.Set(key)
		value.Set(m.MapIndex(key))
		cleanValue(newKey)
		cleanValue(value)
		if !newKey.Equal(key) {
			m.SetMapIndex(key, reflect.Value{})
		}
		m.SetMapIndex(newKey, value)
	}
}
