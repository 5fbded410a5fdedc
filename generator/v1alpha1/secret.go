package v1alpha1

import (
	"regexp"
	"strings"
)

// SecretVariable matches names of environment variables and flags that may hold a secret. Import leaves such a variable out, and generate refuses it.
var SecretVariable = regexp.MustCompile(`(?i)pass|secret|token|key|credential`)

// Of other names that a person may choose, fewer say that the value is a secret: checksum/secret and agent-inject-token are usual annotations.
var (
	secretMetadata   = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential`)
	secretAnnotation = regexp.MustCompile(`(?i)passw|passphrase`)
)

// secretText matches a URL with a password, a token of Keystone (Fernet), and one of Kubernetes (JWT).
var secretText = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/\s:@]*:[^\s/@][^\s@]*@|\bgAAAA[A-Za-z0-9_-]{60,}|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.`)

// HoldsSecret says why a text must not be in a bundle; empty: it may.
func HoldsSecret(text string) string {
	switch {
	case strings.Contains(text, "PRIVATE KEY"):
		return "holds a PRIVATE KEY"
	case secretText.MatchString(text):
		return "has credentials in it, a login in a URL or a token"
	}
	return ""
}

// NamesSecret is whether a name that a person chose says that its value is a secret. In is the object of the name, such as
// "spec.roles.node.env".
func NamesSecret(in, name string) bool {
	switch {
	case strings.HasSuffix(in, ".env"):
		return SecretVariable.MatchString(name) && !strings.HasSuffix(name, "_FILE") // the value of which is a path
	case strings.HasSuffix(strings.ToLower(in), "metadata"), strings.HasSuffix(in, ".parameters") && strings.HasPrefix(name, "metadata."):
		return secretMetadata.MatchString(name)
	case strings.HasSuffix(strings.ToLower(in), "annotations"), strings.HasSuffix(strings.ToLower(in), "labels"):
		return secretAnnotation.MatchString(name)
	}
	return false
}
