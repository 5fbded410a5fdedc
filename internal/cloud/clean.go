package cloud

import (
	"bytes"
	"net/url"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cinder-csi/cinder-csi/internal/secret"
)

// longestText is how many bytes Clean keeps of a text from a cloud. The texts of Cinder and Nova have at most 255 characters.
const longestText = 1 << 10

// longestSearch is how many bytes of a text are searched for credentials. A search takes seconds for each megabyte, and Clean keeps less than what this
// one keeps, even behind the longest key.
const longestSearch = 8 * longestText

// Public is a text of a cloud as people, files, events and logs may have it: clean, and without credentials. A gateway may repeat those of a request.
func Public(text string) string { return Clean(secret.Hide(text[:min(len(text), longestSearch)])) }

// PlainURL is a URL without the parts that may hold a secret.
func PlainURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is no URL"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// Clean makes a text from a cloud safe for a log, an error or a terminal. Control characters become U+FFFD, and so do invisible
// characters that change the direction or look of the text after them. Line ends become blanks. Clean cuts a text that is longer
// than longestText.
func Clean(s string) string {
	if len(s) > longestText {
		end := longestText - len("…")
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return s // nearly every text: printable ASCII
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

// CleanStrings applies Clean to every string and every map key in a decoded reply. It does not look into values of type any;
// nothing here decodes into one.
func CleanStrings(into any) { cleaner{}.clean(into) }

// cleaner cleans the strings of a reply to a request with these tokens. A gateway may repeat a token in any of them, and messages have some.
type cleaner struct{ tokens []string }

func (c cleaner) clean(into any) {
	if into != nil {
		c.value(reflect.ValueOf(into))
	}
}

func (c cleaner) text(s string) string {
	for _, token := range c.tokens {
		if len(token) >= shortestSecret && len(s) >= len(token) {
			s = strings.ReplaceAll(s, token, redacted)
		}
	}
	return Clean(s)
}

func (c cleaner) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			c.value(v.Elem())
		}
	case reflect.String:
		if clean := c.text(v.String()); v.CanSet() && clean != v.String() {
			v.SetString(clean)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			c.value(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 { // JSON that is decoded later
			for _, token := range c.tokens {
				if v.CanSet() && len(token) >= shortestSecret && bytes.Contains(v.Bytes(), []byte(token)) {
					v.SetBytes(bytes.ReplaceAll(v.Bytes(), []byte(token), []byte(redacted)))
				}
			}
			return
		}
		for i := range v.Len() {
			c.value(v.Index(i))
		}
	case reflect.Map:
		c.entries(v)
	}
}

// entries replaces entries of a map by cleaned copies where that is needed.
func (c cleaner) entries(m reflect.Value) {
	for _, key := range m.MapKeys() {
		newKey, value := reflect.New(key.Type()).Elem(), reflect.New(m.Type().Elem()).Elem()
		newKey.Set(key)
		value.Set(m.MapIndex(key))
		c.value(newKey)
		c.value(value)
		if !newKey.Equal(key) {
			m.SetMapIndex(key, reflect.Value{})
		}
		m.SetMapIndex(newKey, value)
	}
}
