// Package support collects what a bug report needs, without secrets: versions, objects, events and logs of the driver. It adds what the other
// commands of kubectl-cinder find.
//
// Secrets are never read. Everything else passes one Redactor before it is listed, printed or written. An object, a log or a page may still
// have a password in it. Redacting too much is an inconvenience, too little is a leak. So the rules go by names of keys, by the forms of
// credentials, and by the values that were found under such keys anywhere else.
package support

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Redacted stands for a value that was taken out.
const Redacted = "REDACTED"

// shortest is the length of a value, in bytes, from which on it is also taken out where no key names it. A shorter one may be an ordinary word.
const shortest = 8

// Redactor takes secrets out of texts and objects. It also knows the values that it took out before, and those of NewRedactor.
type Redactor struct {
	known map[string]bool
}

// NewRedactor is one that knows some secrets, such as those of the credentials with which the command logged in.
func NewRedactor(secrets ...string) *Redactor {
	r := &Redactor{known: map[string]bool{}}
	for _, s := range secrets {
		r.learn(s)
	}
	return r
}

func (r *Redactor) learn(value string) {
	value = strings.TrimSpace(value)
	if len(value) >= shortest && value != Redacted {
		r.known[value] = true
	}
}

// secretWord is what the name of a key has whose value is a secret.
const secretWord = `(?:passw(?:or)?d|passphrase|secret|token|api[-_.]?key|private[-_.]?key|access[-_.]?key|client[-_.]?key|credentials?[-_.]?key|` +
	`key[-_.]?data|authorization|cookie|signature)`

var (
	secretKey = regexp.MustCompile(`(?i)` + secretWord)
	// fileKey are keys of an object whose value is a whole file with credentials.
	fileKey = regexp.MustCompile(`(?i)(?:^|[-_.])(?:kubeconfig|clouds\.ya?ml|cloud\.conf|\.?dockerconfigjson|\.?dockercfg)$`)
	// harmlessKey are keys with such a word whose value is a name, a number or a switch.
	harmlessKey = regexp.MustCompile(`(?i)(?:secret|token|credentials?|key|password)[-_.]?(?:name|names|namespace|ref|refs|references?|file|path|type|kind|mode|provider|expirationseconds|ttl|requests?|uid)$` +
		`|^(?:automountServiceAccountToken|tokenRequests|tokenReviews|serviceAccountToken|imagePullSecrets)$`)
	// keyValue is KEY=VALUE, KEY: VALUE and "KEY": "VALUE" in a text. The value may be quoted, and quoted again with backslashes.
	keyValue = regexp.MustCompile(`(?i)((?:\\*["'])?[\w.-]*` + secretWord + `[\w.-]*(?:\\*["'])?[ \t]*[:=][ \t]*)((?:[|>][+-]?[ \t]*)?(?:\\+"(?:[^"\\]|\\[^"])*\\+"|"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;}&"']+))`)
	// option is --KEY VALUE.
	option = regexp.MustCompile(`(?i)(--?[\w-]*` + secretWord + `[\w-]*[ \t]+)([^\s-]\S*)`)
	header = regexp.MustCompile(`(?i)((?:proxy-)?authorization|x-[a-z-]*token|(?:set-)?cookie)((?:\\*["'])?\s*[:=]\s*)([^\r\n]+)`)
	scheme = regexp.MustCompile(`(?i)\b(bearer|basic|negotiate)[ \t]+[A-Za-z0-9._~+/=-]{6,}`)
	// userInfo is the part of a URL before the host.
	userInfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:\\?/\\?/)[^/\s@"'<>]*(?:/[^/\s@"'<>:]*)?@`)
	pemKey   = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
	// bare are credentials that show what they are by their form: JSON Web Tokens, Fernet tokens of Keystone, PEM in base64.
	bare = regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?|\bgAAAA[A-Za-z0-9_=-]{20,}|\bLS0tLS1CRUdJTi[A-Za-z0-9+/=_-]{8,}`)
)

// secret reports whether the value of a key is a secret.
func secret(key string) bool { return secretKey.MatchString(key) && !harmlessKey.MatchString(key) }

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
	text = keyValue.ReplaceAllStringFunc(text, func(found string) string {
		m := keyValue.FindStringSubmatch(found)
		key := strings.Trim(strings.TrimRight(m[1], " \t:="), `"'\`)
		if !secret(key) {
			return found
		}
		value := strings.Trim(strings.TrimLeft(m[2], "|>+- \t"), `"'\`)
		if value == "" || value == Redacted {
			return found
		}
		r.learnText(value)
		quote := ""
		if i := strings.IndexFunc(m[2], func(c rune) bool { return c != '\\' }); i >= 0 && (m[2][i] == '"' || m[2][i] == '\'') {
			quote = m[2][:i+1]
		}
		return m[1] + quote + Redacted + quote
	})
	text = option.ReplaceAllStringFunc(text, func(found string) string {
		m := option.FindStringSubmatch(found)
		if !secret(strings.Trim(m[1], "- \t")) || m[2] == Redacted {
			return found
		}
		r.learnText(m[2])
		return m[1] + Redacted
	})
	text = scheme.ReplaceAllString(text, "${1} "+Redacted)
	text = userInfo.ReplaceAllString(text, "${1}"+Redacted+"@")
	return r.Known(bare.ReplaceAllString(text, Redacted))
}

// blocks takes out the block scalars of YAML under a secret key: "KEY: |" and the lines that are indented further.
func blocks(text string, r *Redactor) string {
	if !strings.Contains(text, "\n") {
		return text
	}
	var out []string
	inside := -1 // the indentation of the key, in a block
	for _, line := range strings.Split(text, "\n") {
		indented := len(line) - len(strings.TrimLeft(line, " "))
		if inside >= 0 && (indented > inside || strings.TrimSpace(line) == "") {
			r.learnText(line)
			continue
		}
		inside = -1
		if m := blockKey.FindStringSubmatch(line); m != nil && secret(strings.Trim(m[1], `"'`)) {
			inside = indented
			line = line[:len(line)-len(m[2])] + Redacted
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

var blockKey = regexp.MustCompile(`^[ -]*([\w."'-]+):[ \t]*([|>][+-]?[0-9]?[ \t]*)$`)

// Known takes out the values that are known to be secrets. It is the last pass over everything that is written: a value may be learned late.
func (r *Redactor) Known(text string) string {
	values := make([]string, 0, len(r.known))
	for v := range r.known {
		values = append(values, v)
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one may be a part of another
	for _, v := range values {
		text = strings.ReplaceAll(text, v, Redacted)
		if escaped := inJSON(v); escaped != v {
			text = strings.ReplaceAll(text, escaped, Redacted)
		}
	}
	return text
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
		if name, isText := v["name"].(string); isText && secret(name) {
			if _, isText := v["value"].(string); isText { // a variable of a container
				v["value"] = r.all(v["value"])
			}
		}
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
	case (secret(key) || fileKey.MatchString(key)) && (isText || !structure(key)):
		return r.all(value)
	}
	return r.Value(value)
}

// structure reports whether a key of the API of Kubernetes has names below it, and no secrets: a volume from a Secret.
func structure(key string) bool {
	return slices.Contains([]string{"secret", "secrets", "secretRef", "secretKeyRef"}, key)
}

// all takes out every text of a value.
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
	}
	return value
}

// options are the words of a command line: --password, VALUE.
func (r *Redactor) options(words []any) {
	for i := 1; i < len(words); i++ {
		before, isText := words[i-1].(string)
		word, alsoText := words[i].(string)
		if isText && alsoText && strings.HasPrefix(before, "-") && !strings.Contains(before, "=") && secret(strings.TrimLeft(before, "-")) && !strings.HasPrefix(word, "-") {
			words[i] = r.all(word)
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
