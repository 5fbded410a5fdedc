package contract

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Template is text with places that a request fills: "${pvc.namespace}/${pvc.name}". "$$" stands for "$"; nothing else may
// follow a "$".
type Template struct {
	parts []part
}

// part is literal text, or a place where name is not empty.
type part struct{ text, name string }

// Names of the places in a Template.
const (
	PlacePVCName      = "pvc.name"
	PlacePVCNamespace = "pvc.namespace"
	PlacePVName       = "pv.name"
)

// places lists what a Template may be filled with.
var places = []string{PlacePVCName, PlacePVCNamespace, PlacePVName}

// maxTemplate is the longest text of a Template, in bytes: what it becomes is bounded by maxMetadata.
const maxTemplate = 1024

// ParseTemplate reads a template. Errors say what is wrong with it.
func ParseTemplate(text string) (Template, error) {
	if len(text) > maxTemplate {
		return Template{}, fmt.Errorf("it has %d bytes; at most %d are allowed", len(text), maxTemplate)
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
			return Template{}, fmt.Errorf("a $ begins a place such as ${%s}; write $$ for the sign itself", PlacePVCName)
		}
		if !slices.Contains(places, name) {
			return Template{}, fmt.Errorf("nothing is known for ${%.40s}; there are %s", name, strings.Join(places, ", "))
		}
		t.parts, text = append(t.parts, part{name: name}), after
	}
	return t, nil
}

// Fill gives the text with every place filled. An error says which place has no value, or that the text is longer than Cinder
// takes as a value of metadata.
func (t Template) Fill(values map[string]string) (string, error) {
	var b strings.Builder
	for _, p := range t.parts {
		b.WriteString(p.text)
		if p.name == "" {
			continue
		}
		if values[p.name] == "" {
			return "", fmt.Errorf("the request does not tell ${%s}; external-provisioner needs --extra-create-metadata", p.name)
		}
		b.WriteString(values[p.name])
	}
	if n := utf8.RuneCountInString(b.String()); n > maxMetadata {
		return "", fmt.Errorf("it becomes %d characters long; Cinder takes up to %d", n, maxMetadata)
	}
	return b.String(), nil
}
