package plan

import (
	"fmt"
	"maps"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// size is the size of the cluster, and the settings of the attacher that follow from it. It comes from the configuration alone: a size that
// followed the quota or the volumes of the cloud would change the bundle whenever they do.
func (d *decider) size() (Decision[string], Decision[v1alpha1.AttacherSettings]) {
	s := d.clusterSize()
	upTo := fmt.Sprintf("settings for up to %d volumes and %d nodes", s.Volumes, s.Nodes)
	name := settingOf(s.Name, d.given.Size != "", "spec.size", upTo+"; spec.size is not set")
	if name.Source == FromConfig {
		name.Reason += ": " + upTo
	}
	return name, Decision[v1alpha1.AttacherSettings]{Value: s.Attacher, Source: name.Source, Reason: d.bySize("measured: " + s.Because)}
}

// clusterSize is the configured size. One that does not exist is a problem already, so any other serves here.
func (d *decider) clusterSize() v1alpha1.ClusterSize {
	s, known := v1alpha1.SizeOf(d.spec.Size)
	if !known {
		s, _ = v1alpha1.SizeOf(v1alpha1.MediumCluster)
	}
	return s
}

func (d *decider) bySize(reason string) string {
	if d.given.Size == "" {
		return "size is medium by default; " + reason
	}
	return "spec.size is set to " + d.spec.Size + "; " + reason
}

// memory is what the containers of the controller ask for.
func (d *decider) memory() Decision[map[string]string] {
	s := d.clusterSize()
	return Decision[map[string]string]{
		Value: maps.Clone(s.Memory), Source: sourceOf(d.given.Size != ""),
		Reason: d.bySize(fmt.Sprintf("measured: the sidecars had about a tenth less at rest with %d volumes", s.Volumes)),
	}
}

// requests are what a container asks for, before the configuration changes it.
func (d *decider) requests(role, container string) map[string]string {
	all := base().requests[role+"/"+container]
	if memory := d.clusterSize().Memory[container]; role == v1alpha1.ControllerRole && memory != "" {
		return merged(all, map[string]string{"memory": memory})
	}
	return all
}
