// Package shell writes values of others into commands that a person copies: names and IDs of a cloud, a cluster or a bundle.
//
// Word keeps any text one word. ID and Name go further: they print a placeholder for a text that cannot be an ID or a name. The command
// could only fail with such a text, or do something else.
package shell

import (
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

var (
	plain = regexp.MustCompile(`^[a-zA-Z0-9_./:=,@%+-]+$`)
	// A path of a field has brackets.
	candidate = regexp.MustCompile(`^[a-zA-Z0-9_./:=,@%+][a-zA-Z0-9_./:=,@%+\[\]-]*$`)
	// Most names of Kubernetes are DNS subdomains (RFC 1123).
	name  = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	label = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

// Word is one word of a command of a POSIX shell.
func Word(s string) string {
	if plain.MatchString(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Line is a command of these words.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = Word(w)
	}
	return strings.Join(quoted, " ")
}

// Candidates are the names that a completion may offer. The shell writes a candidate into the line without quotes, and runs the line at the next TAB.
func Candidates(names []string) []string {
	return slices.DeleteFunc(names, func(s string) bool { return !candidate.MatchString(s) })
}

// ID is a UUID, or the placeholder for a text that is none.
func ID(s, placeholder string) string {
	if IsID(s) {
		return s
	}
	return placeholder
}

// IsID reports whether a text is a UUID, as OpenStack gives its objects.
func IsID(s string) bool { return contract.IsUUID(s) }

// Name is the name of a Kubernetes object, or the placeholder for a text that can be none.
func Name(s, placeholder string) string {
	if IsName(s) {
		return s
	}
	return placeholder
}

// IsName reports whether a text can name a Kubernetes object: it is a DNS subdomain.
func IsName(s string) bool { return len(s) <= 253 && name.MatchString(s) }

// IsLabel reports whether a text is a DNS label: the name of a namespace or of a release.
func IsLabel(s string) bool { return len(s) <= 63 && label.MatchString(s) }
