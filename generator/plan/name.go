package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// maxClassName is the longest class name the generator makes of a type's name. Kubernetes takes 253 characters; tools put class
// names into label values, which end at 63.
const maxClassName = 63

var (
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	label     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	notSlug   = regexp.MustCompile(`[^a-z0-9.-]+`)
	badDots   = regexp.MustCompile(`[.-]*(\.-|-\.|\.\.)[.-]*`)
)

func isSubdomain(s string) bool { return len(s) <= 253 && subdomain.MatchString(s) }

func isLabel(s string) bool { return len(s) <= 63 && label.MatchString(s) }

// className is the name of the class of one volume type: prefix and slug. If the slug lost something of the type name, six hex
// digits follow: the start of the SHA-256 of the type ID. The name depends on this type only, so a new type in the cloud renames
// no class.
func className(prefix, typeName, typeID string) string {
	slug := slugOf(typeName)
	if slug == typeName && len(prefix)+len(slug) <= maxClassName {
		return prefix + slug
	}
	sum := sha256.Sum256([]byte(typeID))
	hash := "-" + hex.EncodeToString(sum[:])[:6]
	if room := max(maxClassName-len(prefix)-len(hash), 1); len(slug) > room {
		slug = strings.TrimRight(slug[:room], ".-")
	}
	return prefix + slug + hash
}

// slugOf is the nearest DNS subdomain, "type" for a name of which nothing remains.
func slugOf(name string) string {
	slug := notSlug.ReplaceAllString(strings.ToLower(name), "-")
	return cmp.Or(strings.Trim(badDots.ReplaceAllString(slug, "-"), ".-"), "type")
}
