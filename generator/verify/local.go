package verify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/internal/documents"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

// An edited bundle must not make the program that verifies it fetch, run or read anything. kustomize does all three if a
// kustomization says so: it gets URLs, runs git for repositories, and reads directories elsewhere on the disk. So verify builds
// the bundle in memory. Before kustomize sees it, every kustomization must consist of keys that this generator writes. It is a list
// of allowed keys, because a list of refused keys could miss one.

// kustomizationFile is all that a bundle's kustomizations hold, as kustomize reads them.
type kustomizationFile struct {
	APIVersion  string `json:"apiVersion"`
	Kind        string `json:"kind"`
	SortOptions struct {
		Order  string `json:"order"`
		Legacy struct {
			First []string `json:"orderFirst"`
			Last  []string `json:"orderLast"`
		} `json:"legacySortOptions"`
	} `json:"sortOptions"`
	Resources []string `json:"resources"`
	Patches   []struct {
		Path   string `json:"path"`
		Target struct {
			Kind      string `json:"kind"`
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"target"`
	} `json:"patches"`
}

// kustomizationNames are the names under which kustomize looks for a kustomization.
var kustomizationNames = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// local checks every YAML file that kustomize or Helm may be shown, by absolute path; root is the bundle's directory.
func local(root string, files map[string][]byte) error {
	l := locals{root: root, files: files, named: map[string]bool{}}
	nodes := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		l.at = name
		if nodes += documents.Nodes(files[name]); nodes > documents.MostNodes {
			return fmt.Errorf("the files of the bundle have more than %d keys and items", documents.MostNodes)
		}
		if err := documents.Check(files[name]); err != nil {
			l.problem("", "%s", err)
			continue
		}
		switch base := path.Base(name); {
		case slices.Contains(kustomizationNames[1:], base):
			l.problem("", "kustomize would read it; a bundle's are called %s", kustomizationNames[0])
		case strings.HasSuffix(base, ".yaml") && l.yaml(files[name]) && base == kustomizationNames[0]:
			l.kustomization(files[name])
		}
	}
	if l.problems == nil {
		return nil
	}
	return printable.Rows("the bundle holds what this generator does not write, so it is not built (keep own changes in an overlay outside of the directory):\n  " +
		printable.Lines("\n  ", l.problems))
}

type locals struct {
	root, at string
	files    map[string][]byte
	named    map[string]bool // files and directories that a kustomization names
	problems []string
}

// mostProblems are what one message lists.
const mostProblems = 20

func (l *locals) problem(key, format string, args ...any) {
	if len(l.problems) == mostProblems {
		l.problems = append(l.problems, "and more")
	}
	if len(l.problems) > mostProblems {
		return
	}
	if key != "" {
		key += ": "
	}
	l.problems = append(l.problems, strings.TrimPrefix(l.at, l.root+"/")+": "+key+fmt.Sprintf(format, args...))
}

// yaml refuses anchors and aliases, with which a short document stands for one that fills the memory. It refuses merge keys, too: parsers make different
// documents of them. It reports whether the file has none.
func (l *locals) yaml(text []byte) bool {
	if !bytes.ContainsAny(text, "&*!") && !bytes.Contains(text, []byte(mergeKey)) {
		return true // 2,000 classes take long to parse once more
	}
	before := len(l.problems)
	l.documents(text, func(n *yaml.Node) bool {
		at := indirect(n)
		if at != nil {
			l.problem("", "line %d: anchors, aliases and merge keys are not used in a bundle", at.Line)
		}
		return at == nil
	})
	return len(l.problems) == before
}

const mergeKey = "<<"

// documents yields the documents of a file until one is refused.
func (l *locals) documents(text []byte, accept func(*yaml.Node) bool) {
	for in := yaml.NewDecoder(bytes.NewReader(text)); ; {
		var n yaml.Node
		if err := in.Decode(&n); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			l.problem("", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
			return
		}
		if !accept(&n) {
			return
		}
	}
}

// indirect returns the first node whose content stands elsewhere; nil if there is none.
func indirect(n *yaml.Node) *yaml.Node {
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		return n
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Value == mergeKey {
			return child
		}
		if at := indirect(child); at != nil {
			return at
		}
	}
	return nil
}

// kustomization reads a text as kustomize does: another parser may see other keys in it.
func (l *locals) kustomization(text []byte) {
	var k kustomizationFile
	if err := kubeyaml.UnmarshalStrict(text, &k); err != nil {
		l.problem("", "%s; a bundle's kustomization has apiVersion, kind, sortOptions, resources and patches (path, target)",
			strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", ""))
		return
	}
	count := 0
	l.documents(text, func(*yaml.Node) bool { count++; return true })
	if count > 1 {
		l.problem("", "holds more than one document")
	}
	for _, ref := range k.Resources {
		if strings.HasSuffix(ref, ".yaml") {
			l.file("resources", ref)
		} else {
			l.directory("resources", ref)
		}
	}
	for _, p := range k.Patches {
		if l.file("patches", p.Path) {
			l.patch(p.Path)
		}
	}
}

// patchOperations are the operations of a bundle's patches (RFC 6902). Each line of those that copy and move could double the document.
var patchOperations = []string{"add", "remove", "replace", "test"}

// patch refuses patches other than a list of these operations.
func (l *locals) patch(name string) {
	l.documents(l.files[path.Join(path.Dir(l.at), name)], func(document *yaml.Node) bool {
		var operations []struct {
			Op    string    `yaml:"op"`
			Path  string    `yaml:"path"`
			Value yaml.Node `yaml:"value"`
		}
		err := document.Decode(&operations)
		for _, o := range operations {
			if err == nil && !slices.Contains(patchOperations, o.Op) {
				err = fmt.Errorf("op %.40q", o.Op)
			}
		}
		if err != nil {
			l.problem("patches", "%s: %s; a bundle's patch is a list of %s", name, strings.TrimPrefix(err.Error(), "yaml: "), strings.Join(patchOperations, ", "))
		}
		return err == nil
	})
}

var (
	fileRef      = regexp.MustCompile(`^([A-Za-z0-9_-]+/)*[A-Za-z0-9_-]+\.yaml$`)
	directoryRef = regexp.MustCompile(`^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*$`) // no dot: kustomize takes github.com/x/y for a repository
)

// file is whether a reference leads to a file below the kustomization.
func (l *locals) file(key, ref string) bool {
	if !fileRef.MatchString(ref) {
		l.problem(key, "%.200q is not a file of the bundle", ref)
		return false
	}
	target := path.Join(path.Dir(l.at), ref)
	_, there := l.files[target]
	if !there {
		l.problem(key, "%s is not there", ref)
	}
	return there && l.once(key, target)
}

// once is whether nothing else names a file or a directory. Kustomize builds a directory as often as it is named: with two names on each level
// forty levels take longer than anybody waits.
func (l *locals) once(key, target string) bool {
	if l.named[target] {
		l.problem(key, "%s is named more than once; name it in one place", path.Base(target))
		return false
	}
	l.named[target] = true
	return true
}

// directory is a reference to another kustomization: below this one, or in the checkout that the caller named.
func (l *locals) directory(key, ref string) {
	outside := strings.HasPrefix(ref, "../") && !strings.ContainsAny(ref, ":?@") && !strings.Contains(ref, "//")
	if !outside && !directoryRef.MatchString(ref) {
		l.problem(key, "%.200q is not a directory of the bundle", ref)
		return
	}
	target := path.Join(path.Dir(l.at), ref)
	if _, there := l.files[path.Join(target, kustomizationNames[0])]; there {
		l.once(key, target)
		return
	}
	if target == l.root || strings.HasPrefix(target, l.root+"/") {
		l.problem(key, "%s is not there", ref)
		return
	}
	l.problem(key, "%s is outside of the bundle; where it was made with --base, give the same --base", ref)
}
