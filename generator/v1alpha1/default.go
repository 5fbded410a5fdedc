package v1alpha1

import (
	"maps"
	"reflect"
)

// The defaults that do not depend on the target.
const (
	defaultKubernetesVersion = "1.32"
	DefaultCredentialsKey    = "clouds.yaml"
	DefaultCloudEntry        = "openstack"
	DefaultKubeconfigSecret  = "service-network-admin-kubeconfig"
	None                     = "none"
)

// WithDefaults is the configuration with every target-independent default filled in and metadata.name folded into clusterID.
// The receiver is not changed.
func (d Distribution) WithDefaults() Spec {
	s := d.Spec
	fill(&s.KubernetesVersion, defaultKubernetesVersion)
	fill(&s.Size, MediumCluster)
	fill(&s.ClusterID, d.Metadata.Name)
	for _, setting := range Settings {
		setting.fillIn(&s)
	}
	if len(s.Driver.Metadata) == 0 {
		s.Driver.Metadata = []string{MetadataService, ConfigDrive}
	}
	fill(&s.Driver.SELinux, Auto)
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
	fill(&s.Monitoring.NodePorts, Auto)
	fill(&s.HyperShift.KubeconfigSecret, DefaultKubeconfigSecret)
	fill(&s.HyperShift.GuestAccess, ServiceAccountToken)
	return s
}

// WithoutDefaults is the shortest configuration that WithDefaults makes this one of: no key has its default, and the name is in
// metadata.name. unnamed is the clusterID of a configuration without a name. The receiver is not changed.
func (s Spec) WithoutDefaults(unnamed string) Distribution {
	d := Distribution{Spec: s}
	if s.ClusterID != unnamed {
		d.Metadata.Name = s.ClusterID
	}
	d.Spec.ClusterID = ""
	clearDefaults(reflect.ValueOf(&d.Spec).Elem(), reflect.ValueOf(Distribution{}.WithDefaults()))
	return d
}

// clearDefaults empties each field that has its default. It writes to fields of structs only, so that no slice, map or pointer of the original
// changes.
func clearDefaults(value, byDefault reflect.Value) {
	for i := range value.NumField() {
		field, otherwise := value.Field(i), byDefault.Field(i)
		switch {
		case field.Kind() == reflect.Struct:
			clearDefaults(field, otherwise)
		case reflect.DeepEqual(field.Interface(), otherwise.Interface()):
			field.SetZero()
		}
	}
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
