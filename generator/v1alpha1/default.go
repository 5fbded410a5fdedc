package v1alpha1

import "maps"

// The defaults that do not depend on the target.
const (
	DefaultKubernetesVersion = "1.32"
	DefaultCredentialsKey    = "clouds.yaml"
	DefaultCloudEntry        = "openstack"
	DefaultKubeconfigSecret  = "service-network-admin-kubeconfig"
	DefaultLogLevel          = 2
	None                     = "none"
)

// WithDefaults is the configuration with every target-independent default filled in and metadata.name folded into clusterID.
// The receiver is not changed.
func (d Distribution) WithDefaults() Spec {
	s := d.Spec
	fill(&s.KubernetesVersion, DefaultKubernetesVersion)
	fill(&s.ClusterID, d.Metadata.Name)
	if s.Driver.LogLevel == nil {
		level := DefaultLogLevel
		s.Driver.LogLevel = &level
	}
	fill(&s.OpenShift.Coexistence, SideBySide)
	fill(&s.Credentials.Key, DefaultCredentialsKey)
	fill(&s.Credentials.Cloud, DefaultCloudEntry)
	fill(&s.Topology.Mode, Auto)
	s.Topology.ZoneMap = maps.Clone(s.Topology.ZoneMap)
	if len(s.StorageClasses.Include) == 0 {
		s.StorageClasses.Include = []string{"*"}
	}
	fill(&s.StorageClasses.Default, Auto)
	fill(&s.VolumeAttachLimit, Auto)
	if s.Snapshots.Enabled == nil {
		enabled := true
		s.Snapshots.Enabled = &enabled
	}
	fill(&s.Monitoring.Kind, None)
	fill(&s.HyperShift.KubeconfigSecret, DefaultKubeconfigSecret)
	return s
}

func fill[T ~string](value *T, otherwise T) {
	if *value == "" {
		*value = otherwise
	}
}
