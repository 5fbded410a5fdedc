package migrate

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/cluster"
)

// volumeRules are for the documentation; survey reads the volumes.
var volumeRules = []rule{
	{key: "spec.csi and spec.nodeAffinity", to: "spec.topology.mode", why: "if a volume is bound to a zone: " + zonesStay},
	{key: "spec.cinder", why: inTreeVolumes},
	{key: "spec.accessModes", why: sharedVolumes},
	{key: "spec.csi.nodeStageSecretRef and the like", why: oneCloud},
}

const (
	inTreeVolumes = "Kubernetes gives in-tree volumes (spec.cinder) to the driver with the name " + cluster.UpstreamName + ", so the bundle must have that name (spec.driver.name)"
	sharedVolumes = "the driver of a bundle refuses to attach a file system to several nodes; move the data of volumes with ReadWriteMany first"
)

// InlineAdvice is what to do with pods that have volumes of the driver without a claim.
const InlineAdvice = "the driver serves no inline volumes (volumes[].csi in a pod), which upstream's did before 1.31. " +
	"Give these pods generic ephemeral volumes (volumes[].ephemeral) before the swap: only the old driver deletes theirs"

func isCinderVolume(d document) bool {
	spec, _ := d.yaml["spec"].(map[string]any)
	return spec["cinder"] != nil || d.text("spec", "csi", "driver") == cluster.UpstreamName
}

func (f *survey) addVolume(d document) error {
	var v corev1.PersistentVolume
	if err := (value{d.yaml}).loosely(&v); err != nil {
		return &fileError{d.label(), err}
	}
	f.volumes.add(v, contract.TopologyKeyOf(cluster.UpstreamName))
	f.volumeFiles = appendNew(f.volumeFiles, d.source)
	return nil
}

// tell are the notes of all volumes together: a cluster has thousands.
func (f *Found) tell(files []string) []Note {
	var notes []Note
	for _, about := range []struct {
		key   string
		names []string
		to    string
		why   string
	}{
		{"in a zone", f.Zoned, "spec.topology.mode", zonesStay},
		{"in-tree", f.InTree, "", inTreeVolumes},
		{"ReadWriteMany", f.Shared, "", sharedVolumes},
		{"with Secrets", f.WithSecret, "", oneCloud},
	} {
		if n := len(about.names); n > 0 {
			key := fmt.Sprintf("PersistentVolumes %s (%d): %s", about.key, n, someOf(about.names))
			notes = append(notes, Note{File: strings.Join(files, ", "), Key: key, To: about.to, Why: about.why})
		}
	}
	return notes
}

// someOf names up to ten.
func someOf(names []string) string {
	const most = 10
	names = slices.Clone(names)
	slices.Sort(names)
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
