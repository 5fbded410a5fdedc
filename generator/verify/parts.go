package verify

import (
	"bytes"
	"fmt"
	"maps"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// largeFile is how many bytes a file has before it is built in parts, and partDocuments how many documents a part has. A large file has about 120 classes.
const largeFile, partDocuments = 64 << 10, 100

// separator is what kustomize splits a file by.
var separator = regexp.MustCompile(`\n---.*\n`)

// inParts are the files of a bundle whose kustomizations name the parts of a large file in its place; nil: no file is large.
// Kustomize compares each object of a file with all before it in the file, and each one of the bundle with all before it there. With 2,000
// classes the first comparison is a quarter of the build. The objects and their order stay, and the second comparison finds what the first one did.
func inParts(files map[string][]byte) map[string][]byte {
	all := maps.Clone(files)
	divided := false
	for name, text := range files {
		var document yaml.Node
		if path.Base(name) != kustomizationNames[0] || yaml.Unmarshal(text, &document) != nil {
			continue
		}
		resources := sequence(&document, "resources")
		if resources == nil {
			continue
		}
		var list []*yaml.Node
		for _, r := range resources.Content {
			parts := divide(all, path.Dir(name), r.Value)
			if parts == nil {
				list = append(list, r)
			}
			for _, p := range parts {
				list = append(list, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: p})
			}
		}
		if len(list) == len(resources.Content) {
			continue
		}
		resources.Content = list
		changed, err := yaml.Marshal(&document)
		if err != nil {
			return nil
		}
		all[name], divided = changed, true
	}
	if !divided {
		return nil
	}
	return all
}

// sequence is the list that a document has under a key; nil: there is none.
func sequence(document *yaml.Node, key string) *yaml.Node {
	if len(document.Content) != 1 {
		return nil
	}
	root := document.Content[0]
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == key && root.Content[i+1].Kind == yaml.SequenceNode {
			return root.Content[i+1]
		}
	}
	return nil
}

// divide adds the parts of a file to the files and returns their names. A small file has none, nor one whose parts have names of other files.
func divide(files map[string][]byte, dir, name string) (parts []string) {
	text := files[path.Join(dir, name)]
	if len(text) < largeFile || bytes.ContainsRune(text, '\r') {
		return nil
	}
	add := func(text []byte) bool {
		part := fmt.Sprintf("%s-part-%d.yaml", strings.TrimSuffix(name, ".yaml"), len(parts)+1)
		if _, taken := files[path.Join(dir, part)]; taken {
			return false
		}
		files[path.Join(dir, part)] = text
		parts = append(parts, part)
		return true
	}
	begin, documents := 0, 0
	for _, at := range separator.FindAllIndex(text, -1) {
		if documents++; documents < partDocuments || string(text[at[0]:at[1]]) != "\n---\n" {
			continue
		}
		if !add(text[begin : at[0]+1]) {
			return nil
		}
		begin, documents = at[1], 0
	}
	if begin == 0 || !add(text[begin:]) {
		return nil
	}
	return parts
}
