package secret

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode"
)

// form is how a kind of credential looks, whatever its name is.
type form struct {
	kind    string
	needs   string // what each text of the form has, in lower case; "a|b": one of them. Few texts have it, and a search is cheaper than a match.
	pattern *regexp.Regexp
}

// forms are the credentials that a text shows by itself. What they capture is none of it. In a login, a slash after a port begins a path, so that an
// @ behind it is of the path. A password that nobody escaped may have a slash otherwise, and an @: the last one ends it. (?i) takes ſ for an s, which has no other lower case.
var forms = []form{
	{"a PRIVATE KEY", "private key", regexp.MustCompile(`PRIVATE KEY(?:[A-Z ]*-----(?s:.*?)(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$))?`)},
	{encodedKey, "ls0tls1crudjti", regexp.MustCompile(`\bLS0tLS1CRUdJTi[A-Za-z0-9+/=_-]{8,}`)},
	{"a login in a URL", "@", regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*:\\?/\\?/)[^/\s:@"]*:(?:[^\s/"]+|[^\s/@"]*[^\s/@"0-9][^\s/@"]*/[^\s@"]*)(@)`)},
	{"a login before a host and port", "@", regexp.MustCompile(`(^|[\s"'=,(])[^\s/@:"'=,]+:[^\s/"']+(@[A-Za-z0-9.\[\]:-]+:[0-9]{1,5})\b`)},
	{"a login of a proxy", "_proxy", regexp.MustCompile(`(?i)((?:https?|ftp|all)_proxy\\*["']?[ \t]*[:=][ \t]*\\*["']?(?:[a-z0-9]+://)?)[^\s"]+(@)`)},
	{"a token of Keystone", "gaaaa", regexp.MustCompile(`\bgAAAA[A-Za-z0-9_=-]{20,}`)},
	{"a JSON Web Token", "eyj", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`)},
	{"a token of OpenShift", "sha256~", regexp.MustCompile(`\bsha256~[A-Za-z0-9_-]{20,}`)},
	{"a token of GitLab", "gl", regexp.MustCompile(`\bgl(?:pat|ptt|dt|rt|cbt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_.-]{16,}`)},
	{"a token of GitHub", "gh|github_pat_", regexp.MustCompile(`\bgh[a-z]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}`)},
	{"a token of Vault", "hv", regexp.MustCompile(`\bhv[sbr]\.[A-Za-z0-9_-]{20,}`)},
	{"a token of Slack", "xox", regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{10,}`)},
	{"an access key of AWS", "akia|asia", regexp.MustCompile(`\bA(?:KI|SI)A[A-Z0-9]{16}\b`)},
	{"a header with credentials", "bearer|authorization", regexp.MustCompile(`(?i)\bbearer[ \t]+[A-Za-z0-9._~+/=-]{20,}|(authorization["']?[ \t]*[:=][ \t]*["']?)(?:basic|bearer|digest|negotiate|token)[ \t]+\S+`)},
	{"a signed URL", "ig=|ignature=|redential=", regexp.MustCompile(`(?i)([?&](?:sig|signature|x-amz-signature|x-amz-credential|temp_url_sig)=)[^\s&"'<>\\]+`)},
}

// In says what kind of credential a text has in it; empty: none that it shows.
func In(text string) string {
	lower := strings.ToLower(text)
	for _, f := range forms {
		if f.mayBe(lower) && f.pattern.MatchString(text) && (f.kind != encodedKey || hidesKey(text, f.pattern)) {
			return f.kind
		}
	}
	return ""
}

// InValue is In for the value of a variable. A proxy needs neither scheme nor port, so that its name alone says that there is a login before an @.
func InValue(name, value string) string { return In(name + "=" + value) }

// mayBe is whether a text in lower case has what the form needs.
func (f form) mayBe(lower string) bool {
	for one := range strings.SplitSeq(f.needs, "|") {
		if strings.Contains(lower, one) {
			return true
		}
	}
	return false
}

// encodedKey may also be a certificate, which is no secret. Where too much is only a nuisance, Hide takes both.
const encodedKey = "a PRIVATE KEY in base64"

// longestKey is how many characters of base64 a key is looked for in, and mostKeys how often. A chain of certificates with its key is shorter.
const longestKey, mostKeys = 32 << 10, 64

// hidesKey reports whether a text in base64 has a private key, also behind certificates, and on several lines. A text that begins more often than
// anybody needs may hide one.
func hidesKey(text string, begin *regexp.Regexp) bool {
	all := begin.FindAllStringIndex(text, mostKeys+1)
	if len(all) > mostKeys {
		return true
	}
	for _, at := range all {
		run := strings.Map(ofBase64, text[at[0]:min(len(text), at[0]+longestKey)])
		run, _, _ = strings.Cut(run, "=")
		decoded, _ := base64.RawStdEncoding.DecodeString(run) // what stands before a mistake
		if strings.Contains(string(decoded), "PRIVATE KEY") {
			return true
		}
	}
	return false
}

// ofBase64 is a character of base64, without the spaces between lines. What ends the text is "=".
func ofBase64(c rune) rune {
	switch {
	case unicode.IsSpace(c):
		return -1
	case c == '-':
		return '+'
	case c == '_':
		return '/'
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/':
		return c
	}
	return '='
}

// Hide takes out the credentials that a text shows by itself.
func Hide(text string) string {
	lower := strings.ToLower(text)
	for _, f := range forms {
		if f.mayBe(lower) {
			text = f.pattern.ReplaceAllString(text, "${1}REDACTED${2}")
		}
	}
	return text
}

// HideValue takes the login out of the address of a proxy. The value of another variable stays.
func HideValue(name, value string) string {
	if !strings.HasSuffix(strings.ToLower(name), "_proxy") {
		return value
	}
	return strings.TrimPrefix(Hide(name+"="+value), name+"=")
}
