package v1alpha1

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// wantObject says what belongs where something else than an object stands.
func wantObject(n *yaml.Node, t reflect.Type) string {
	known := keys(t)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!bool" && slices.Contains(known, "enabled") {
		return fmt.Sprintf("want an object; write {enabled: %s}", n.Value)
	}
	return "want an object with keys of " + strings.Join(known, ", ")
}

// asItem is the one text of a list that lacks its brackets.
func asItem(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" || len(n.Value) > longestKey {
		return ""
	}
	if n.Tag == "!!str" && !PlainText(n.Value) {
		return fmt.Sprintf("; write [%q]", n.Value)
	}
	return fmt.Sprintf("; write [%s]", n.Value)
}

// asScalar says how to write a value that is right but for its quotes, or that old YAML has another word for.
func asScalar(n *yaml.Node, want string, tags []string) string {
	if n.Kind != yaml.ScalarNode || len(n.Value) > longestKey {
		return ""
	}
	if want == "text" {
		return fmt.Sprintf("; write it in quotes: %q", n.Value)
	}
	var bare yaml.Node // as it would be read without quotes
	if n.Tag == "!!str" && yaml.Unmarshal([]byte(n.Value), &bare) == nil && len(bare.Content) == 1 && slices.Contains(tags, bare.Content[0].Tag) {
		return fmt.Sprintf("; write it without quotes: %s", n.Value)
	}
	if !slices.Contains(tags, "!!bool") {
		return ""
	}
	switch strings.ToLower(n.Value) {
	case "yes", "y", "on", "1":
		return "; write true"
	case "no", "n", "off", "0":
		return "; write false"
	}
	return ""
}
