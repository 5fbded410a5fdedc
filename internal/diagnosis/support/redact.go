// Package support collects what a bug report needs, without secrets: versions, objects, events and logs of the driver. It adds what the other
// commands of kubectl-cinder find.
//
// Secrets are never read. Everything else passes one Redactor before it is listed, printed or written. An object, a log or a page may still
// have a password in it. Redacting too much is an inconvenience, too little is a leak. So of objects only names that this project knows keep
// their values (allowed.go). The rules for texts go by names of keys and by the forms of credentials. They also know the values that were
// found under such keys anywhere else.
package support

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/internal/secret"
)

// Redacted stands for a value that was taken out.
const Redacted = "REDACTED"

// shortest is the length of a value, in bytes, from which on it is also taken out where no key names it. A shorter one may be an ordinary word.
const shortest = 8

// mostLengths is how many lengths the values of one beginning may have, before the longest stands for all. A log can teach thousands, and each is
// one more reading of the text.
const mostLengths = 64

// mostUnclosed is how many lists without an end of one text are read to the end of that text. A log can have thousands; those after it end with
// their line.
const mostUnclosed = 10

// Redactor takes secrets out of texts and objects. It also knows the values that it took out before, and those of NewRedactor.
type Redactor struct {
	known   map[string]bool
	lengths map[string][]int // of the known values, by how they begin, the longest first
}

// NewRedactor is one that knows some secrets, such as those of the credentials with which the command logged in.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{known: map[string]bool{}, lengths: map[string][]int{}}
	for _, s := range secrets {
		r.learn(s)
	}
	return r
}

func (r *Redactor) learn(value string) {
	value = strings.TrimSpace(value)
	for _, v := range []string{value, inJSON(value)} {
		if len(v) < shortest || v == Redacted || r.known[v] {
			continue
		}
		r.known[v] = true
		if lengths := r.lengths[v[:shortest]]; !slices.Contains(lengths, len(v)) {
			lengths = append(lengths, len(v))
			slices.SortFunc(lengths, func(a, b int) int { return b - a })
			r.lengths[v[:shortest]] = lengths
		}
	}
}

// secretWord is what the name of a key has whose value is a secret.
const secretWord = `(?:passw(?:or)?d|passphrase|secret|token|api[-_.]?key|private[-_.]?key|access[-_.]?key|client[-_.]?key|credentials?[-_.]?key|` +
	`key[-_.]?data|authorization|cookie|signature|passcode|admin[-_.]?pass|\bpwd\b|keyring|_sig\b|` +
	`(?-i:[A-Z0-9]_(?:PW|PWD|PASS|KEY|HEADERS)\b))`

// quoted is a value in quotes; those may be quoted again with backslashes. Two single quotes are one in a value of YAML.
const quoted = `\\+"(?:[^"\\]|\\[^"])*\\+"|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'`

// array is a list of values between brackets, as in JSON and in one line of YAML. One that is not closed ends with the line: a log has cut it.
const (
	closed = `\[(?:` + quoted + `|[^\]"'\\])*\]`
	array  = closed + `|\[[^\r\n]*`
)

// between stands between a key and its value. A value of YAML may begin with a mark.
const (
	between = `[ \t]*[:=]+>?[ \t]*`
	mark    = `(?:[|>][+-]?[ \t]*)?`
)

// form is how a key and its value are written. They are apart, so that the value of a harmless key is not read once for each key within it.
type form struct{ key, value *regexp.Regexp }

var (
	secretKey   = regexp.MustCompile(`(?i)` + secretWord)
	closedArray = regexp.MustCompile(`^` + closed)
	// fileKey are keys of an object whose value is a whole file with credentials.
	fileKey = regexp.MustCompile(`(?i)(?:^|[-_.])(?:kubeconfig|clouds\.ya?ml|cloud\.conf|\.?dockerconfigjson|\.?dockercfg)$`)
	// harmlessKey are keys with such a word whose value is a name, a number or a switch.
	harmlessKey = regexp.MustCompile(`(?i)(?:secret|token|credentials?|key|password)[-_.]?(?:name|names|namespace|ref|refs|references?|file|path|type|kind|mode|provider|expirationseconds|ttl|requests?|uid)$` +
		`|^(?:automountServiceAccountToken|tokenRequests|tokenReviews|serviceAccountToken|imagePullSecrets)$`)
	// wholeLine is a line of YAML, of an INI file or of a shell that begins with KEY: or KEY=. Its value may have blanks and every sign.
	wholeLine = regexp.MustCompile(`(?im)^([ \t#;]*(?:- +)*(?:export +)?\\*["']?(\w[\w.-]*)(\\*["'])?[ \t]*[:=]+>?[ \t]*)([^\s][^\r\n]*)`)
	// onlyQuoted is the rest of a line that is one value in quotes, and literal that of a line of JSON.
	onlyQuoted = regexp.MustCompile(`^(?:` + quoted + `)[ \t,;}\])]*$`)
	literal    = regexp.MustCompile(`^(?:\\*["'{\[]|(?:null|true|false|-?[0-9][0-9.eE+-]*)[ \t]*(?:[,}\]]|$))`)
	// quotedKey is "KEY": VALUE, as in JSON. A sign of JSON ends a value without quotes.
	quotedKey = form{
		regexp.MustCompile(`(?i)[\w.-]*` + secretWord + `[\w.-]*\\*["']` + between),
		regexp.MustCompile(`^` + mark + `(?:` + quoted + `|` + array + `|[^\s,;}&"'{\[][^\s,;}&"']*)`),
	}
	// flowKey is {KEY: VALUE, as in one line of YAML. A comma or a brace ends a value without quotes, and blanks belong to it.
	flowKey = form{
		regexp.MustCompile(`(?i)[{,][ \t]*\\*["']?[\w.-]*` + secretWord + `[\w.-]*\\*["']?:[ \t]+`),
		regexp.MustCompile(`^(?:` + quoted + `|` + array + `|[^\s,}&"'{\[\\][^,}\r\n"]*)`),
	}
	// keyValue is KEY=VALUE and KEY: VALUE in running text. A blank ends a value without quotes, and so does a quote at the end of a word: that is of
	// the text around.
	keyValue = form{
		regexp.MustCompile(`(?i)[\w.-]*` + secretWord + `[\w.-]*` + between),
		regexp.MustCompile(`^` + mark + `(?:` + quoted + `|` + array + `|(?:[^\s"\\]|\\[^"\r\n]|"\w)+)`),
	}
	// option is --KEY VALUE.
	option = regexp.MustCompile(`(?i)(--?[\w-]*` + secretWord + `[\w-]*[ \t]+)([^\s-]\S*)`)
	header = regexp.MustCompile(`(?i)((?:proxy-)?authorization|x-[a-z-]*token|(?:set-)?cookie)((?:\\*["'])?\s*[:=]\s*)([^\r\n]+)`)
	scheme = regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)[ \t]+[A-Za-z0-9._~+/=-]{6,}`)
	// userInfo is the part of a URL before the host. A password that nobody escaped may have every sign, so the last @ ends it. A digest of an
	// image also follows an @.
	userInfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:\\?/\\?/)([^\s<>"]*)@(sha256:[0-9a-f]{64})?`)
	// openingQuote may have backslashes before it.
	openingQuote = regexp.MustCompile(`^\\*["']`)
	pemKey       = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
)

// secretName reports whether the value of a key is a secret.
func secretName(key string) bool { return secretKey.MatchString(key) && !harmlessKey.MatchString(key) }

// learnText is learn for a value in a text, where a sentence may follow the word "token:". An ordinary word would make holes in every log.
func (r *Redactor) learnText(value string) {
	if strings.ContainsAny(value, "0123456789") {
		r.learn(value)
	}
}

// Text takes the secrets out of a text, such as a log.
func (r *Redactor) Text(text string) string {
	text = pemKey.ReplaceAllString(text, Redacted)
	text = blocks(text, r)
	text = header.ReplaceAllString(text, "${1}${2}"+Redacted)
	text = wholeLine.ReplaceAllStringFunc(text, r.line)
	text = r.pairs(flowKey, text)
	text = r.pairs(quotedKey, text)
	text = r.pairs(keyValue, text)
	text = option.ReplaceAllStringFunc(text, func(found string) string {
		m := option.FindStringSubmatch(found)
		if !secretName(strings.Trim(m[1], "- \t")) || m[2] == Redacted {
			return found
		}
		r.learnText(m[2])
		return m[1] + Redacted
	})
	text = scheme.ReplaceAllString(text, "${1} "+Redacted)
	text = userInfo.ReplaceAllStringFunc(text, withoutUser)
	return r.Known(secret.Hide(text))
}

// line takes out the rest of a line that begins with a secret key. Values in quotes and JSON are left to pairs, which knows where they end.
func (r *Redactor) line(found string) string {
	m := wholeLine.FindStringSubmatch(found)
	before, key, inJSON, value := m[1], m[2], m[3] != "", strings.TrimSpace(m[4])
	if !secretName(key) || value == Redacted || onlyQuoted.MatchString(value) || inJSON && literal.MatchString(value) {
		return found
	}
	r.learnText(value)
	return before + Redacted
}

// pairs takes out the values of the secret keys of a form. The value of another key may have a secret key itself: a=b&token=c.
func (r *Redactor) pairs(f form, text string) string {
	var out strings.Builder
	for unclosed := 0; ; {
		at := f.key.FindStringIndex(text)
		if at == nil {
			out.WriteString(text)
			return out.String()
		}
		key := strings.Trim(strings.TrimRight(text[at[0]:at[1]], " \t:=>"), "{, \t\"'\\")
		out.WriteString(text[:at[1]])
		text = text[at[1]:]
		if secretName(key) {
			within := text
			list := strings.HasPrefix(strings.TrimLeft(text, "|>+- \t"), "[")
			if list && unclosed >= mostUnclosed {
				within, _, _ = strings.Cut(text, "\n")
			}
			value := f.value.FindString(within)
			if list && !closedArray.MatchString(strings.TrimLeft(value, "|>+- \t")) {
				unclosed++
			}
			out.WriteString(r.value(value))
			text = text[len(value):]
		}
	}
}

// value is what stands in place of a secret value. Its quotes stay.
func (r *Redactor) value(found string) string {
	value := strings.Trim(strings.TrimLeft(found, "|>+- \t"), `"'\`)
	if value == "" || strings.HasPrefix(value, Redacted) { // another form took it out
		return found
	}
	r.learnText(value)
	if strings.HasPrefix(found, "[") {
		for _, one := range strings.FieldsFunc(found, func(c rune) bool { return strings.ContainsRune("[],\"'\\\n", c) }) {
			r.learnText(one)
		}
		return inArray(found)
	}
	quote := openingQuote.FindString(found)
	return quote + Redacted + quote
}

// inArray is what stands in place of a list of secret values: a list with quotes as they were, so that JSON stays JSON.
func inArray(found string) string {
	inner := strings.TrimLeft(found[1:], " \t\r\n")
	if strings.TrimLeft(inner, "]") == "" {
		return found // an empty list
	}
	quote := openingQuote.FindString(inner)
	return "[" + quote + Redacted + quote + "]"
}

// withoutUser takes the user and the password out of a URL.
func withoutUser(found string) string {
	m := userInfo.FindStringSubmatch(found)
	if m[3] == "" {
		return m[1] + Redacted + "@"
	}
	image := m[2][strings.LastIndex(m[2], "@")+1:]
	if image == m[2] {
		return found
	}
	return m[1] + Redacted + "@" + image + "@" + m[3]
}

// blocks takes out the values that stand on the lines below a secret key: "KEY: |" or "KEY:", and the lines that are indented further. The items
// of a list may be indented as its key is. A value that begins beside its key may go on in the lines below.
func blocks(text string, r *Redactor) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	var out []string
	inside, items := -1, false // the indentation of the key, in a block; whether items of a list may have it too
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		indented := indentation(line)
		if inside >= 0 && (indented > inside || strings.TrimSpace(line) == "" || items && indented == inside && isItem(line)) {
			r.learnText(strings.TrimLeft(line, " \t-"))
			continue
		}
		inside = -1
		if m := blockKey.FindStringSubmatch(line); m != nil && isBlock(strings.Trim(m[1], `"'`), m[2], line, lines[i+1:]) {
			inside, items = column(line), i+1 < len(lines) && isItem(lines[i+1])
			line = strings.TrimRight(strings.TrimSuffix(strings.TrimSuffix(line, "\r"), m[2]), " \t") + " " + Redacted
		}
		if inside < 0 && goesOn(line, lines[i+1:]) {
			inside, items = column(line), false // line takes out what is beside the key
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func indentation(line string) int { return len(line) - len(strings.TrimLeft(line, " \t")) }

// column is where the key of a line begins, after the dash of an item.
func column(line string) int { return len(line) - len(strings.TrimLeft(line, " \t-")) }

func isItem(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " \t"), "- ") }

// goesOn reports whether the value beside a secret key ends below it. What follows a complete value in quotes or brackets is not part of it, and
// neither is a mapping.
func goesOn(line string, below []string) bool {
	m := besideKey.FindStringSubmatch(line)
	if m == nil || len(below) == 0 || !secretName(strings.Trim(m[1], `"'`)) || onlyQuoted.MatchString(m[2]) || strings.HasPrefix(m[2], "{") {
		return false
	}
	next := strings.TrimSpace(below[0])
	return next != "" && indentation(below[0]) > column(line) && !mapping.MatchString(below[0]) && !strings.HasPrefix(next, `"`)
}

// isBlock reports whether the lines below a key are its secret value. Below an empty "secret:" of Kubernetes stand names, and no secrets.
func isBlock(key, mark, line string, below []string) bool {
	switch {
	case !secretName(key):
		return false
	case mark != "":
		return true
	case len(below) > 0 && isItem(below[0]) && indentation(below[0]) == column(line):
		return !structure(key) || !mapping.MatchString(below[0])
	case len(below) == 0 || strings.TrimSpace(below[0]) == "" || indentation(below[0]) <= column(line):
		return false // the value is empty
	}
	return !structure(key) || !mapping.MatchString(below[0])
}

var (
	blockKey  = regexp.MustCompile(`^[ \t-]*([\w."'-]+)[ \t]*[:=][ \t]*([|>][+-]?[0-9]?[ \t]*)?\r?$`)
	besideKey = regexp.MustCompile(`^[ \t-]*(["']?[\w.-]+["']?)[ \t]*[:=][ \t]*(\S.*?)[ \t\r]*$`)
	mapping   = regexp.MustCompile(`^[ \t-]*[\w."'/-]+:(?:\s|$)`)
)

// Known takes out the values that are known to be secrets. It is the last pass over everything that is written: a value may be learned late. It
// reads the text once, however many values a log has taught. Values that overlap go as a whole.
func (r *Redactor) Known(text string) string {
	var out strings.Builder
	end := 0 // of the last value
	for i := 0; i+shortest <= len(text); i++ {
		lengths := r.lengths[text[i:i+shortest]]
		many := len(lengths) > mostLengths
		if many {
			lengths = []int{min(lengths[0], len(text)-i)}
		}
		for _, n := range lengths {
			if i+n > len(text) || !many && !r.known[text[i:i+n]] {
				continue
			}
			if i >= end {
				out.WriteString(text[end:i] + Redacted)
			}
			end = max(end, i+n)
			break // the longest
		}
	}
	out.WriteString(text[end:])
	return out.String()
}

// inJSON is a text as it stands in a string of JSON.
func inJSON(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return text
	}
	return strings.Trim(strings.TrimSpace(b.String()), `"`)
}

// lastApplied is the annotation in which kubectl apply keeps the whole object.
const lastApplied = "last-applied-configuration"

// Value takes the secrets out of a decoded value of JSON, at every depth. It changes the value. What only servers write is left out.
func (r *Redactor) Value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "managedFields")
		_, isSecret := v["kind"].(string)
		if isSecret && v["kind"] == "Secret" {
			for _, field := range []string{"data", "stringData"} {
				if _, found := v[field]; found {
					v[field] = r.all(v[field])
				}
			}
		}
		if name, isText := v["name"].(string); isText && secretName(name) {
			if isScalar(v["value"]) { // a variable of a container
				v["value"] = r.all(v["value"])
			}
		}
		r.others(v)
		for key, field := range v {
			v[key] = r.field(key, field)
		}
		return v
	case []any:
		for i := range v {
			v[i] = r.Value(v[i])
		}
		r.options(v)
		return v
	case string:
		return r.text(v)
	}
	return value
}

// field is the value of a key. An object below a secret key loses all its texts.
func (r *Redactor) field(key string, value any) any {
	switch text, isText := value.(string); {
	case strings.HasSuffix(key, lastApplied) && isText:
		return r.document(text)
	case (secretName(key) || fileKey.MatchString(key)) && (isScalar(value) || !structure(key)):
		return r.all(value)
	case isText:
		value = secret.HideValue(key, text)
	}
	return r.Value(value)
}

// isScalar reports whether a value is a text or a number: a password may be written as either.
func isScalar(value any) bool {
	_, isText := value.(string)
	_, isNumber := value.(json.Number)
	return isText || isNumber
}

// structure reports whether a key of the API of Kubernetes has names below it, and no secrets: a volume from a Secret.
func structure(key string) bool {
	return slices.Contains([]string{"secret", "secrets", "secretRef", "secretKeyRef"}, key)
}

// all takes out every text and every number of a value.
func (r *Redactor) all(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key := range v {
			v[key] = r.all(v[key])
		}
	case []any:
		for i := range v {
			v[i] = r.all(v[i])
		}
	case string:
		if v == "" {
			return v
		}
		r.learn(v)
		return Redacted
	case json.Number:
		r.learn(v.String())
		return Redacted
	}
	return value
}

// options are the words of a command line: --password, VALUE.
func (r *Redactor) options(words []any) {
	for i := 1; i < len(words); i++ {
		before, isText := words[i-1].(string)
		if isText && isScalar(words[i]) && strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && secretName(strings.TrimLeft(before, "-")) && !strings.HasPrefix(fmt.Sprint(words[i]), "-") {
			words[i] = r.all(words[i])
		}
	}
}

// text is Text for a string of an object, which may be a document of JSON itself.
func (r *Redactor) text(text string) string {
	if trimmed := strings.TrimSpace(text); strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		if out, is := r.embedded(text); is {
			return out
		}
	}
	return r.Text(text)
}

// document is a text that must be a document of JSON. One that is none is taken out as a whole.
func (r *Redactor) document(text string) string {
	if out, is := r.embedded(text); is {
		return out
	}
	return Redacted
}

func (r *Redactor) embedded(text string) (out string, is bool) {
	value, err := decode([]byte(text))
	if err != nil {
		return "", false
	}
	encoded, err := json.Marshal(r.Value(value))
	return string(encoded), err == nil
}

// decode keeps numbers as they are written.
func decode(text []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	err := d.Decode(&value)
	return value, err
}
