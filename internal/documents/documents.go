// Package documents bounds YAML texts before a library reads them. The library compares each key of a mapping with each, so
// its time grows with the square of their number. A short text may also hold many documents.
package documents

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"go.yaml.in/yaml/v3"
)

// The bounds. A bundle for 2,000 volume types has 24,000 keys, and 20 in its largest mapping.
const (
	mostInMapping = 5_000   // keys of one mapping
	MostNodes     = 400_000 // keys and items of a text, and so its memory
	mostDocuments = 20_000
	mostTags      = 20      // declared tags, which the library compares with each other, too
	mostAliased   = 1 << 20 // bytes that aliases stand for; the library bounds the number of their values alone
)

// Check returns an error for a text that exceeds the bounds, with the line where that is known. A text that is not YAML passes: its reader says
// what is wrong with it. No error repeats a text of the input.
func Check(text []byte) error {
	if bytes.IndexByte(text, 0) >= 0 {
		return errors.New("has a zero byte; save it as UTF-8") // the library reads UTF-16, too
	}
	if bytes.Count(text, []byte("%TAG")) > mostTags {
		return fmt.Errorf("declares more than %d tags", mostTags)
	}
	nodes := Nodes(text)
	if nodes > MostNodes {
		return fmt.Errorf("has more than %d keys and items", MostNodes)
	}
	aliases := bytes.IndexByte(text, '&') >= 0 && bytes.IndexByte(text, '*') >= 0
	if err := checkDocuments(text); err != nil || nodes <= mostInMapping && !aliases {
		return err // too few keys for a large mapping: nothing to parse
	}
	left, sizes := len(text)+mostAliased, map[*yaml.Node]int{}
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var n yaml.Node
		if err := in.Decode(&n); err != nil {
			return nil // also io.EOF
		}
		if err := mapping(&n); err != nil {
			return err
		}
		if left -= size(&n, sizes); left < 0 {
			return fmt.Errorf("its aliases stand for more than %d bytes", mostAliased)
		}
	}
}

// size is how many bytes the texts below a node have, with what aliases stand for. It is not exact above the bound. The map keeps the sizes of anchors.
func size(n *yaml.Node, of map[*yaml.Node]int) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	bytes, known := of[n]
	if known {
		return bytes
	}
	if n.Anchor != "" {
		of[n] = 0 // an alias in it stands for itself, which the library refuses
	}
	bytes = len(n.Value)
	for _, child := range n.Content {
		bytes = min(bytes+size(child, of), math.MaxInt/2)
	}
	if n.Anchor != "" {
		of[n] = bytes
	}
	return bytes
}

// Nodes is at least how many keys and items a text has, but for one in each document. A parser needs some 200 bytes for the shortest. An item of a
// sequence begins with a dash before a space, or the end of a line. One in brackets has a bracket or a comma.
func Nodes(text []byte) (n int) {
	for i, b := range text {
		switch b {
		case ':', ',', '?', '[', '{':
			n++
		case '-':
			if i+1 == len(text) || bytes.IndexByte(blanks, text[i+1]) >= 0 {
				n++
			}
		}
	}
	return n
}

// blanks are the first bytes of what may follow the dash of an item: space, tab and the ends of lines.
var blanks = []byte(" \t\r\n\xc2\xe2")

func checkDocuments(text []byte) error {
	if bytes.Count(text, []byte("\n---")) >= mostDocuments {
		return fmt.Errorf("has more than %d documents", mostDocuments)
	}
	return nil
}

// mapping looks for a mapping with too many keys. It follows no alias: what an alias stands for is looked at where it is written.
func mapping(n *yaml.Node) error {
	if n.Kind == yaml.MappingNode && len(n.Content)/2 > mostInMapping {
		return fmt.Errorf("line %d: a mapping has more than %d keys", n.Line, mostInMapping)
	}
	for _, child := range n.Content {
		if err := mapping(child); err != nil {
			return err
		}
	}
	return nil
}
