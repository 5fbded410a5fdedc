package verify

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"
)

// patches finds the patches of a plane that change nothing because no object matches their target: kustomize says nothing of them.
// A name or label that is wrong in the kustomization would leave a setting out.
func patches(root string, files map[string][]byte, p plane, objects []Object) []Finding {
	var findings []Finding
	seen := map[string]bool{}
	var visit func(dir string)
	visit = func(dir string) {
		file := path.Join(dir, kustomizationNames[0])
		var k kustomizationFile
		if err := yaml.Unmarshal(files[file], &k); seen[dir] || err != nil {
			return // a file that cannot be read has ended the build before
		}
		seen[dir] = true
		for _, ref := range append(k.Resources, k.Components...) {
			visit(path.Join(dir, ref))
		}
		for _, p := range k.Patches {
			t := p.Target
			if t != (patchTarget{}) && !t.renamed(files[path.Join(dir, p.Path)]).matches(objects) {
				findings = append(findings, Finding{Problem: fmt.Sprintf(
					"%s: patches: %s matches no object: its target is %s; correct the target, or remove the patch",
					strings.TrimPrefix(file, root+"/"), p.Path, t)})
			}
		}
	}
	visit(path.Join(root, p.dir))
	return findings
}

// patchTarget is what a patch selects; an empty field selects all. Kind and name are regular expressions.
type patchTarget struct {
	Kind          string `yaml:"kind"`
	Name          string `yaml:"name"`
	LabelSelector string `yaml:"labelSelector"`
}

// renamed is the target under the name that the patch gives its object.
func (t patchTarget) renamed(patch []byte) patchTarget {
	var ops []struct {
		Path  string `yaml:"path"`
		Value any    `yaml:"value"`
	}
	if t.Name == "" || yaml.Unmarshal(patch, &ops) != nil { // a merge, which is a mapping, renames nothing
		return t
	}
	for _, op := range ops {
		if name, is := op.Value.(string); is && op.Path == "/metadata/name" {
			t.Name = regexp.QuoteMeta(name)
		}
	}
	return t
}

func (t patchTarget) matches(objects []Object) bool {
	selector, err := labels.Parse(t.LabelSelector)
	kind, kindErr := regexp.Compile("^(?:" + t.Kind + ")$")
	name, nameErr := regexp.Compile("^(?:" + t.Name + ")$")
	if err != nil || kindErr != nil || nameErr != nil {
		return false // kustomize has refused it before
	}
	for _, o := range objects {
		if (t.Kind == "" || kind.MatchString(o.Kind())) && (t.Name == "" || name.MatchString(o.Name())) && selector.Matches(o.labels()) {
			return true
		}
	}
	return false
}

func (t patchTarget) String() string {
	text := t.Kind
	if t.Name != "" {
		text += " " + t.Name
	}
	if t.LabelSelector != "" {
		text += " with labels " + t.LabelSelector
	}
	return text
}

// labels are the labels of the object.
func (o Object) labels() labels.Set {
	metadata, _ := o.Fields["metadata"].(map[string]any)
	set := labels.Set{}
	of, _ := metadata["labels"].(map[string]any)
	for key, value := range of {
		set[key], _ = value.(string)
	}
	return set
}
