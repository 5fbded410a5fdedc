// Package secret decides what other people may read: in a bundle, in what import proposes, and in the archive of kubectl cinder report.
//
// A name of this project and its sidecars is public (public.txt). A list of names that may be shown is complete when a name is missing, a list of
// bad names is not. Some other names say that their value is a secret. Of the rest nobody knows. A bundle takes those, because a person wrote them
// into a configuration; import and the archive leave them out. A text that has the form of a credential stands nowhere, under any name.
package secret

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Kind is what a name says about its value.
type Kind int

const (
	Unknown Kind = iota // a name of somebody else
	Public              // a name of this project
	Secret              // the name says so
)

// names are the public flags of containers, and the public names of variables and settings. A test writes and compares the file.
//
//go:embed public.txt
var names string

var flags, variables = section("flags"), section("variables")

// section reads one part of public.txt: "[NAME]", then a name on each line.
func section(name string) map[string]bool {
	found := map[string]bool{}
	_, rest, _ := strings.Cut(names, "["+name+"]\n")
	rest, _, _ = strings.Cut(rest, "\n[")
	for line := range strings.Lines(rest) {
		found[strings.TrimSpace(line)] = true
	}
	return found
}

// Variable is the kind of an environment variable.
func Variable(name string) Kind { return kind(name, variables[name]) }

// Flag is the kind of a flag, without its hyphens.
func Flag(name string) Kind { return kind(name, flags[strings.ReplaceAll(name, "_", "-")]) }

// domains are those of annotations that Kubernetes, OpenShift, Helm and this driver write. Of anybody else's the value may be anything, such as a
// template with a password.
var domains = []string{"kubernetes.io", "k8s.io", "openshift.io", "helm.sh", "cinder-csi.io", "cinder.csi.openstack.org"}

// Annotation is the kind of an annotation or a label of Kubernetes. Their names often speak of secrets and hold none: checksum/secret,
// agent-inject-token. Only a password is a secret there.
func Annotation(key string) Kind {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case password.MatchString(key):
		return Secret
	case slices.ContainsFunc(domains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) }):
		return Public
	}
	return Unknown
}

// Metadata is the kind of a property of a volume or server in OpenStack, and of a setting under another name that a person chose.
func Metadata(key string) Kind {
	if property.MatchString(key) {
		return Secret
	}
	return Unknown
}

var (
	password = regexp.MustCompile(`(?i)passw|passphrase`)
	property = regexp.MustCompile(`(?i)passw|passphrase|secret|token|credential`)
	// within are words of which each part of a name is enough.
	within = regexp.MustCompile(`passw|passphrase|passcode|secret|token|credential|authorization|cookie|keyring|keytab|(?:api|access|private|master|encryption|account|shared|ssh|tls|client|signing)key|(?:user|admin|root|db|login)pass`)
)

// words are those that stand for a secret as a whole word of a name.
var words = []string{"pass", "pw", "pwd", "key", "keys", "sig", "signature", "auth", "headers"}

// harmless are last words of a name whose value says where a secret is, or something about it.
var harmless = []string{
	"file", "files", "path", "dir", "name", "names", "namespace", "ref", "type", "kind", "mode", "provider", "url", "uri", "endpoint", "host", "port", "enabled", "disabled",
	"size", "length", "timeout", "interval", "ttl", "algorithm", "version", "region", "log", "method",
}

func kind(name string, public bool) Kind {
	split := split(name)
	switch {
	case public:
		return Public
	case len(split) == 0 || slices.Contains(harmless, split[len(split)-1]):
		return Unknown
	case within.MatchString(strings.Join(split, "")), slices.ContainsFunc(split, standsForSecret):
		return Secret
	}
	return Unknown
}

// standsForSecret reports whether a word stands for a secret: pass, key2, mypass.
func standsForSecret(word string) bool {
	word = strings.TrimRight(word, "0123456789")
	return slices.Contains(words, word) || strings.HasSuffix(word, "pass") && !slices.Contains([]string{"bypass", "compass", "overpass", "surpass", "trespass", "underpass"}, word)
}

// split are the words of a name: OS_PASSWORD, api-key, clientSecret, HMACKey.
func split(name string) (words []string) {
	begin, last := 0, ' '
	cut := func(end int) {
		if begin < end {
			words = append(words, strings.ToLower(name[begin:end]))
		}
		begin = end
	}
	for i, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			cut(i)
			begin = i + len(string(c))
		case unicode.IsUpper(c) && unicode.IsLower(last):
			cut(i)
		case unicode.IsLower(c) && unicode.IsUpper(last) && i-begin > 1:
			cut(i - 1)
		}
		last = c
	}
	cut(len(name))
	return words
}
