package v1alpha1

import "maps"

// The defaults that do not depend on the target.
const (
	DefaultKubernetesVersion = "1.32"
	DefaultCredentialsKey    = "clouds.yaml"
	DefaultCloudEntry        = "openstack"
	DefaultKubeconfigSecret  = "service-network-admin-kubeconfig"
	DefaultLogLevel          = 2
	DefaultKubeletDir        = "/var/lib/kubelet"
	DefaultReads             = 100 // requests a second, of the driver's flag
	DefaultWrites            = 50
	DefaultDrainTimeout      = "20s"
	None                     = "none"
)

// WithDefaults is the configuration with every target-independent default filled in and metadata.name folded into clusterID.
// The receiver is not changed.
func (d Distribution) WithDefaults() Spec {
	s := d.Spec
	fill(&s.KubernetesVersion, DefaultKubernetesVersion)
	fill(&s.ClusterID, d.Metadata.Name)
	s.Driver.fillDefaults()
	fill(&s.OpenShift.Coexistence, SideBySide)
	fill(&s.Credentials.Key, DefaultCredentialsKey)
	fill(&s.Credentials.Cloud, DefaultCloudEntry)
	fill(&s.Credentials.Request, Auto)
	fill(&s.Topology.Mode, Auto)
	s.Topology.ZoneMap = maps.Clone(s.Topology.ZoneMap)
	if len(s.StorageClasses.Include) == 0 {
		s.StorageClasses.Include = []string{"*"}
	}
	fill(&s.StorageClasses.Default, Auto)
	fill(&s.VolumeAttachLimit, Auto)
	fillPointer(&s.Snapshots.Enabled, true)
	fill(&s.Snapshots.Backup, Auto)
	fill(&s.Monitoring.Kind, None)
	fill(&s.HyperShift.KubeconfigSecret, DefaultKubeconfigSecret)
	fill(&s.HyperShift.GuestAccess, AdminKubeconfig)
	return s
}

func (d *Driver) fillDefaults() {
	fillPointer(&d.LogLevel, DefaultLogLevel)
	fill(&d.LogFormat, LogText)
	fill(&d.KubeletDir, DefaultKubeletDir)
	if len(d.Metadata) == 0 {
		d.Metadata = []string{MetadataService, ConfigDrive}
	}
	fillPointer(&d.RequestsPerSecond.Reads, DefaultReads)
	fillPointer(&d.RequestsPerSecond.Writes, DefaultWrites)
	fill(&d.DrainTimeout, DefaultDrainTimeout)
}

func fill[T ~string](value *T, otherwise T) {
	if *value == "" {
		*value = otherwise
	}
}

func fillPointer[T any](value **T, otherwise T) {
	if *value == nil {
		*value = &otherwise
	}
}
