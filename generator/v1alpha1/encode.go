package v1alpha1

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"go.yaml.in/yaml/v3"

	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// JSON writes a document, indented, with a newline at the end. Keys are in the types' order, so equal documents are equal bytes.
func JSON(document any) ([]byte, error) {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	err := out.Encode(document)
	return printable.JSON(b.Bytes()), err
}

// YAML writes a document with its keys in the types' order, which is the order people read them in.
func YAML(document any) ([]byte, error) {
	text, err := JSON(document)
	if err != nil {
		return nil, err
	}
	in := json.NewDecoder(bytes.NewReader(text)) // no map: the keys would lose their order
	in.UseNumber()
	root, err := node(in)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	out := yaml.NewEncoder(&b)
	out.SetIndent(2)
	if err := out.Encode(root); err != nil {
		return nil, err
	}
	err = out.Close()
	return printable.JSON(b.Bytes()), err // what it escapes is in double quotes, see PlainText
}

// node is the next value of a JSON text, without braces and quotes where YAML can do without; what is empty keeps its braces.
func node(in *json.Decoder) (*yaml.Node, error) {
	token, err := in.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		return children(in, v)
	case string:
		n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v}
		if !PlainText(v) {
			n.Style = yaml.DoubleQuotedStyle
		}
		return n, nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

// children is the object or list that the delimiter began. Keys are values like others.
func children(in *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if open == '{' {
		n.Kind, n.Tag = yaml.MappingNode, "!!map"
	}
	for in.More() {
		child, err := node(in)
		if err != nil {
			return nil, err
		}
		if open == '{' && len(n.Content)%2 == 0 && strings.HasPrefix(child.Value, ":") {
			child.Style = yaml.DoubleQuotedStyle // a line that begins with :: is a command, where it is in the log of a GitHub runner
		}
		n.Content = append(n.Content, child)
	}
	if len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	_, err := in.Token()
	return n, err
}

// ordinary are texts that begin with a letter. With more than five characters they are no word with a meaning, of which "false" is the
// longest. This finds them without a parser: a plan of 2,000 types has 20,000 texts.
var ordinary = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9./_-]*(?: [A-Za-z0-9./_"()-]+)*$`)

// commands matches a line that a runner of pipelines takes as a command in a log, also behind blanks. Double quotes leave no line of its own to it.
var commands = regexp.MustCompile(`(?m)^[ \t]*(::|##)`)

// longestPlain is the longest line without quotes that takes a parser to judge, in bytes. A text inside of a document can cost what no check of the
// document sees.
const longestPlain = 1024

// PlainText is whether text without quotes reads back as the same text, by the rules of old YAML parsers too ("no", "1_000", "12:30", "=").
func PlainText(s string) bool {
	if len(s) > len("false") && ordinary.MatchString(s) {
		return true
	}
	if plain, known := judged.Load(s); known {
		return plain.(bool)
	}
	plain := readsBack(s)
	judged.Store(s, plain)
	return plain
}

// judged are the texts that took a parser. The ID of a volume type is in five places of a bundle.
var judged sync.Map // string -> bool

func readsBack(s string) bool {
	if strings.TrimLeftFunc(s, unicode.IsSpace) != s {
		return false // a reader takes the indentation of a block scalar from its first line
	}
	if string(printable.JSON([]byte(s))) != s || commands.MatchString(s) {
		return false // double quotes escape them
	}
	if strings.ContainsRune(s, '\n') {
		return true // block scalars are always text
	}
	var v any
	if len(s) > longestPlain || strings.ContainsRune(s, '\r') || yaml.Unmarshal([]byte(s), &v) != nil || v != any(s) {
		return false
	}
	switch s {
	case "y", "Y", "n", "N", "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF", "<<", "=":
		return false
	}
	return s[0] < '0' || s[0] > '9' || !bytes.ContainsAny([]byte(s), ":_")
}
