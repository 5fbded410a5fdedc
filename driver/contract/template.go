package contract

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Template is text with placeholders: "${pvc.namespace}/${pvc.name}". "$$" means "$"; nothing else may follow a "$".
type Template struct {
	parts []part
}

// part is literal text, or a placeholder if name is not empty.
type part struct{ text, name string }

// Names of the placeholders in a Template.
const (
	PlaceholderPVCName      = "pvc.name"
	PlaceholderPVCNamespace = "pvc.namespace"
	PlaceholderPVName       = "pv.name"
)

var placeholders = []string{PlaceholderPVCName, PlaceholderPVCNamespace, PlaceholderPVName}

// IsTemplate reports whether the value of a parameter of a StorageClass is a Template.
func IsTemplate(parameter string) bool { return strings.HasPrefix(parameter, ParameterMetadataPrefix) }

// maxTemplate is the longest text of a Template, in bytes; the result has the limit maxMetadata.
const maxTemplate = 1024

func parseTemplate(text string) (Template, error) {
	if len(text) > maxTemplate {
		return Template{}, fmt.Errorf("the template has %d bytes, more than the %d allowed", len(text), maxTemplate)
	}
	var t Template
	for text != "" {
		literal, rest, found := strings.Cut(text, "$")
		if literal != "" {
			t.parts = append(t.parts, part{text: literal})
		}
		if !found {
			break
		}
		if after, escaped := strings.CutPrefix(rest, "$"); escaped {
			t.parts, text = append(t.parts, part{text: "$"}), after
			continue
		}
		inside, open := strings.CutPrefix(rest, "{")
		name, after, closed := strings.Cut(inside, "}")
		if !open || !closed {
			return Template{}, fmt.Errorf("a $ must begin a placeholder such as ${%s}; write $$ for the character $", PlaceholderPVCName)
		}
		if !slices.Contains(placeholders, name) {
			return Template{}, fmt.Errorf("unknown placeholder ${%.40s}; the known ones are %s", name, strings.Join(placeholders, ", "))
		}
		t.parts, text = append(t.parts, part{name: name}), after
	}
	return t, nil
}

// Fill replaces the placeholders by values. It fails if a placeholder has no value, or if the text is too long for a metadata value of Cinder.
func (t Template) Fill(values map[string]string) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.text)
		if p.name == "" {
			continue
		}
		if values[p.name] == "" {
			return "", fmt.Errorf("the request has no value for ${%s}; start external-provisioner with --extra-create-metadata", p.name)
		}
		b.WriteString(values[p.name])
	}
	if n := utf8.RuneCountInString(b.String()); n > maxMetadata {
		return "", fmt.Errorf("the text has %d characters, but Cinder accepts %d", n, maxMetadata)
	}
	return b.String(), CheckText("the text", b.String())
}
