package bundle

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// keyOrder is the order in which Kubernetes' API reference documents the keys that the generator writes. Keys of maps that people
// name (labels, data, parameters) are not in it and are sorted.
var keyOrder = func() map[string]int {
	keys := strings.Fields(`
		apiVersion kind metadata name namespace labels annotations
		sortOptions order legacySortOptions orderFirst orderLast resources components patches images
		op path target newName newTag digest
		labelSelector
		provisioner driver parameters deletionPolicy reclaimPolicy mountOptions allowVolumeExpansion volumeBindingMode allowedTopologies
		matchLabelExpressions key operator value values effect tolerationSeconds
		data
		spec replicas template podSelector policyTypes ingress egress from to ports protocol port
		containers env requests limits imagePullSecrets volumes hostPath secret secretName projected sources items optional
		nodeSelector affinity nodeAffinity podAffinity preferredDuringSchedulingIgnoredDuringExecution weight preference podAffinityTerm
		tolerations priorityClassName securityContext runAsUser runAsGroup fsGroup`)
	order := map[string]int{}
	for i, key := range keys {
		order[key] = i + 1
	}
	return order
}()

// byOrder sorts keys by a given order; those that it lacks come last, sorted.
func byOrder(order map[string]int) func(a, b string) int {
	rank := func(key string) int {
		if at := order[key]; at > 0 {
			return at
		}
		return len(order) + 1
	}
	return func(a, b string) int {
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	}
}

// writer makes YAML of nodes.
type writer struct {
	compare  func(a, b string) int
	comments bool // whether each decision is named above what comes from it
}

func (w writer) document(n node) ([]byte, error) { return encode(w.node(n)) }

// encode writes documents as the files of a bundle have them.
func encode(documents ...*yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	out.CompactSeqIndent()
	for _, d := range documents {
		if err := out.Encode(d); err != nil {
			return nil, err
		}
	}
	err := out.Close()
	return printable.JSON(b.Bytes()), err // what it escapes is in double quotes, see quotedText
}

func (w writer) node(n node) *yaml.Node {
	switch n := n.(type) {
	case object:
		m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, key := range slices.SortedFunc(maps.Keys(n), w.compare) {
			k, inner := quotedText(key), w
			k.HeadComment, inner.comments = w.comment(n[key])
			m.Content = append(m.Content, k, inner.node(n[key]))
		}
		return m
	case list:
		s := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, e := range n {
			comment, more := w.comment(e)
			inner := w
			inner.comments = more
			item := inner.node(e)
			item.HeadComment = comment
			s.Content = append(s.Content, item)
		}
		return s
	case leaf:
		return scalar(n.value)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}
}

// comment names the decision of a part, if it all comes from one; else its parts need comments of their own.
func (w writer) comment(n node) (comment string, more bool) {
	if !w.comments {
		return "", false
	}
	var ids []string
	for _, r := range refsOf(n) {
		ids = append(ids, r.Decision)
	}
	ids = slices.Compact(ids)
	_, isLeaf := n.(leaf)
	switch {
	case len(ids) == 0:
		return "", false
	case len(ids) == 1:
		return "decision: " + ids[0], false
	case isLeaf:
		return "decisions: " + strings.Join(ids, ", "), false
	}
	return "", true
}

func scalar(value any) *yaml.Node {
	if s, isText := value.(string); isText {
		return quotedText(s)
	}
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		panic(err) // a leaf holds scalars and empty maps and lists only
	}
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	return &n
}

// quotedText is a string that every YAML parser, those of YAML 1.1 too, reads as that string.
func quotedText(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case !v1alpha1.PlainText(s):
		n.Style = yaml.DoubleQuotedStyle
	case strings.Contains(s, "\n"):
		n.Style = yaml.LiteralStyle
	}
	return n
}

// yamlWord is a text in YAML that a person copies.
func yamlWord(s string) string {
	word, err := yaml.Marshal(quotedText(printable.Line(s)))
	if err != nil {
		panic(err) // a string can always be written
	}
	return strings.TrimSpace(string(word))
}
