package docs

import (
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// On HyperShift the controller needs the rights in the guest until its last object is gone. Another order strands what has a finalizer. Each page first
// looks at all kinds of objects that only the driver can release.
func TestTheOrdersOfRemovalAgree(t *testing.T) {
	for name, place := range map[string]struct {
		section       string // with the removal
		first, second string // the two planes
		looksAt       []string
	}{
		"how-to/uninstall.md": {
			"", "remove the management plane first", "then the guest plane", []string{"kubectl get persistentvolumes", "kubectl get volumeattachments", "kubectl get volumesnapshotcontents"},
		},
		"how-to/hypershift.md": {
			"\n## Remove\n", "delete -k tenant-a/management", "delete -k tenant-a/guest", []string{"PersistentVolume", "VolumeAttachment", "VolumeSnapshotContent", "(uninstall.md#2-delete-pods-claims-and-snapshots)"},
		},
		"../overlays/hypershift/kustomize/README.md": {
			"\n## Remove\n", "kubectl delete -k $DIR/management", "kubectl delete -k $DIR/guest", []string{"kubectl get persistentvolumes", "kubectl get volumeattachments", "kubectl get volumesnapshotcontents"},
		},
		"../overlays/hypershift/helm/README.md": {
			"\n## Remove\n", "# in the management cluster\nhelm uninstall", "# in the guest cluster\nhelm uninstall", []string{"kubectl get persistentvolumes", "kubectl get volumeattachments", "kubectl get volumesnapshotcontents"},
		},
	} {
		_, text, found := strings.Cut(testfile.Text(t, name), place.section)
		first, second := strings.Index(text, place.first), strings.Index(text, place.second)
		if !found || first < 0 || second < first {
			t.Errorf("%s: want %q, and after it %q", name, place.first, place.second)
		}
		for _, what := range place.looksAt {
			if at := strings.Index(text, what); at < 0 || at > first {
				t.Errorf("%s: want %q before anything is removed", name, what)
			}
		}
	}
}
