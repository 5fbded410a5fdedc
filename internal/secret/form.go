package secret

import (
	"regexp"
	"strings"
)

// form is how a kind of credential looks, whatever its name is.
type form struct {
	kind    string
	pattern *regexp.Regexp
}

// forms are the credentials that a text shows by itself. In a login, a slash after a port begins a path, so that an @ behind it is of the path.
// A password that nobody escaped may have a slash otherwise.
var forms = []form{
	{"a PRIVATE KEY", regexp.MustCompile(`PRIVATE KEY`)},
	{"a PRIVATE KEY in base64", regexp.MustCompile(`\bLS0tLS1CRUdJTi(?:BQUklW|BSU0Eg|BFQyBQ|BPUEVO|BFTkNS|BEU0Eg)[A-Za-z0-9+/=_-]*`)},
	{"a login in a URL", regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*:\\?/\\?/[^/\s:@"]*:(?:[^\s/@"]+|[^\s/@"]*[^\s/@"0-9][^\s/@"]*/[^\s@"]*)@`)},
	{"a login before a host and port", regexp.MustCompile(`(?:^|[\s"'=,(])[^\s/@:"'=,]+:[^\s/@"']+@[A-Za-z0-9.\[\]:-]+:[0-9]{1,5}\b`)},
	{"a token of Keystone", regexp.MustCompile(`\bgAAAA[A-Za-z0-9_=-]{20,}`)},
	{"a JSON Web Token", regexp.MustCompile(`\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?`)},
	{"a token of OpenShift", regexp.MustCompile(`\bsha256~[A-Za-z0-9_-]{20,}`)},
	{"a token of GitLab", regexp.MustCompile(`\bgl[a-z]{2,5}-[A-Za-z0-9_.-]{16,}`)},
	{"a token of GitHub", regexp.MustCompile(`\bgh[a-z]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}`)},
	{"a token of Vault", regexp.MustCompile(`\bhv[sbr]\.[A-Za-z0-9_-]{20,}`)},
	{"a token of Slack", regexp.MustCompile(`\bxox[a-z]-[A-Za-z0-9-]{10,}`)},
	{"an access key of AWS", regexp.MustCompile(`\bA(?:KI|SI)A[A-Z0-9]{16}\b`)},
	{"a header with credentials", regexp.MustCompile(`(?i)\bbearer[ \t]+[A-Za-z0-9._~+/=-]{20,}|authorization["']?[ \t]*[:=][ \t]*\S+`)},
	{"a signed URL", regexp.MustCompile(`(?i)[?&](?:sig|signature|x-amz-signature|x-amz-credential|temp_url_sig)=[^\s&"'<>\\]+`)},
}

// In says what kind of credential a text has in it; empty: none that it shows.
func In(text string) string {
	for _, f := range forms {
		if f.pattern.MatchString(text) {
			return f.kind
		}
	}
	return ""
}

// Tokens matches the credentials that are nothing else from their first sign to their last.
var Tokens = func() *regexp.Regexp {
	var tokens []string
	for _, f := range forms {
		if strings.HasPrefix(f.pattern.String(), `\b`) {
			tokens = append(tokens, f.pattern.String())
		}
	}
	return regexp.MustCompile(strings.Join(tokens, "|"))
}()
