package verify

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A large file that is built in parts gives what it gives as it is: the objects, their order, and the errors.
func TestALargeFileIsBuiltInPartsAsItIsAlone(t *testing.T) {
	class := func(name string) string {
		return "# " + name + "\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata:\n  name: " + name + "\n  annotations:\n    text: |\n      " +
			strings.Repeat("x", largeFile/200) + "\n      ---\nprovisioner: cinder.csi.openstack.org\n"
	}
	var names []string
	for n := range 2*partDocuments + 50 {
		names = append(names, class(fmt.Sprintf("class-%03d", (n*7)%1000))) // not sorted
	}
	joined := func(separator string, documents ...string) string { return strings.Join(documents, separator) }
	for name, c := range map[string]struct {
		file   string
		parts  int
		failed string
	}{
		"as a bundle has it":            {joined("---\n", names...), 3, ""},
		"a notice and an end":           {"# Generated.\n---\n" + joined("---\n", names...) + "---\n", 3, ""},
		"separators with comments":      {joined("--- # more\n", names...), 0, ""},
		"some separators with comments": {joined("--- # more\n", names[:150]...) + "---\n" + joined("---\n", names[150:]...), 2, ""},
		"empty documents":               {joined("---\n---\n---\n", names...), 5, ""},
		"the ends of lines of Windows":  {strings.ReplaceAll(joined("---\n", names...), "\n", "\r\n"), 0, ""},
		"a small file":                  {names[0], 0, ""},
		"a class twice, in two parts":   {joined("---\n", append(names, names[0])...), 3, "class-000"},
		"a separator that none is":      {joined("---\n", names...) + "--- x\n" + class("last"), 3, "invalid document separator"},
		"no YAML in the last part":      {joined("---\n", names...) + "---\n{\n", 3, "classes.yaml"},
		"an empty list at the end":      {joined("---\n", names...) + "---\n[]\n", 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{
				"/bundle/kustomization.yaml": []byte("sortOptions: {order: fifo}\nresources: [first.yaml, classes.yaml, last.yaml]\npatches:\n- path: patch.yaml\n  target: {kind: StorageClass, name: class-007}\n"),
				"/bundle/patch.yaml":         []byte("- {op: add, path: /metadata/labels, value: {a: b}}\n"),
				"/bundle/first.yaml":         []byte(class("z")),
				"/bundle/last.yaml":          []byte(class("a")),
				"/bundle/classes.yaml":       []byte(c.file),
			}
			if got := strings.Count(fmt.Sprint(parted(files)), "-part-"); got != c.parts {
				t.Errorf("want %d parts, got %v", c.parts, parted(files))
			}
			want, wantErr := kustomizeFiles(files, "/bundle", "cluster")
			got, err := kustomize(files, "/bundle", "cluster")
			if diff := cmp.Diff(want, got); diff != "" || fmt.Sprint(wantErr) != fmt.Sprint(err) {
				t.Errorf("want the error %v, got %v, and objects (-want +got):\n%.2000s", wantErr, err, diff)
			}
			if c.failed != "" && (err == nil || !strings.Contains(err.Error(), c.failed)) {
				t.Errorf("want an error with %q, got %v", c.failed, err)
			}
		})
	}
}

// A part has no name that a file has, also one that is not of the bundle.
func TestAPartReplacesNoFile(t *testing.T) {
	text := []byte(strings.Repeat("a: "+strings.Repeat("x", largeFile/100)+"\n---\n", 2*partDocuments) + "a: b\n")
	files := map[string][]byte{"/b/kustomization.yaml": []byte("resources: [c.yaml]\n"), "/b/c.yaml": text, "/b/c-part-2.yaml": []byte("mine")}
	if got := parted(files); got != nil {
		t.Errorf("want no parts, got %v", got)
	}
	delete(files, "/b/c-part-2.yaml")
	if got := parted(files); len(got) != 3 {
		t.Errorf("want 3 parts, got %v", got)
	}
}

// parted are the names of the parts.
func parted(files map[string][]byte) (names []string) {
	for name := range inParts(files) {
		if strings.Contains(name, "-part-") && string(files[name]) == "" {
			names = append(names, name)
		}
	}
	return names
}
