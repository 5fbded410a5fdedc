package verify_test

import (
	"slices"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// sharedKinds are objects of the whole cluster, and requests in the namespace of an operator. StorageClasses are named after volume types, and
// spec.storageClasses.namePrefix is for them.
var sharedKinds = []string{"ClusterRole", "ClusterRoleBinding", "CSIDriver", "VolumeSnapshotClass", "CredentialsRequest"}

// TestTwoBundlesOfOneClusterShareNoObject builds the bundles of two drivers, with all that has rights, in both forms.
func TestTwoBundlesOfOneClusterShareNoObject(t *testing.T) {
	on := true
	for _, target := range targets {
		names := map[string]string{}
		for _, driver := range []string{"", "west.example.com", "south.example.com"} {
			spec := v1alpha1.Spec{
				Driver:        v1alpha1.Driver{Name: driver, Capacity: true},
				Monitoring:    v1alpha1.Monitoring{Kind: v1alpha1.ServiceMonitor},
				NodeLifecycle: v1alpha1.NodeLifecycle{StartupTaint: target != v1alpha1.HostedControlPlane, DrainHook: true},
				Snapshots:     v1alpha1.Snapshots{Enabled: &on, Backup: v1alpha1.Enabled},
			}
			if driver == "" && target != v1alpha1.Vanilla {
				spec.OpenShift.Coexistence, spec.HyperShift.Platform = v1alpha1.Adopt, "None"
			}
			r := decide(t, spec, clouds["topology on"], target)
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				objects := build(t, r, format)
				for _, o := range objects {
					if !slices.Contains(sharedKinds, o.Kind()) {
						continue
					}
					id := o.Kind() + "/" + o.Name()
					if other, taken := names[id]; taken && other != r.Driver.Value {
						t.Errorf("%s %s: %s is in the bundles of %s and %s", target, format, id, other, r.Driver.Value)
					}
					names[id] = r.Driver.Value
				}
				bindRolesOfTheBundle(t, objects)
			}
		}
	}
}

// bindRolesOfTheBundle checks that each binding of the whole cluster names a role of the same bundle.
func bindRolesOfTheBundle(t *testing.T, objects []verify.Object) {
	t.Helper()
	roles := map[string]bool{}
	for _, o := range objects {
		roles[o.Kind()+"/"+o.Name()] = true
	}
	for _, o := range objects {
		if o.Kind() != "ClusterRoleBinding" {
			continue
		}
		role, _ := o.Fields["roleRef"].(map[string]any)["name"].(string)
		if role != o.Name() || !roles["ClusterRole/"+role] {
			t.Errorf("%s binds ClusterRole %s, which the bundle does not have under the name of the binding", o, role)
		}
	}
}
