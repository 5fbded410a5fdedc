package verify_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// plurals are the resources of the kinds of a bundle, as the API server names them.
var plurals = map[string]string{
	"CSIDriver": "csidrivers", "ClusterRole": "clusterroles", "ClusterRoleBinding": "clusterrolebindings", "ConfigMap": "configmaps",
	"CredentialsRequest": "credentialsrequests", "CronJob": "cronjobs", "DaemonSet": "daemonsets", "Deployment": "deployments", "Namespace": "namespaces",
	"NetworkPolicy": "networkpolicies", "PodDisruptionBudget": "poddisruptionbudgets", "PodMonitor": "podmonitors", "PrometheusRule": "prometheusrules",
	"Role": "roles", "RoleBinding": "rolebindings", "Secret": "secrets", "Service": "services", "ServiceAccount": "serviceaccounts",
	"ServiceMonitor": "servicemonitors", "StorageClass": "storageclasses", "VolumeAttributesClass": "volumeattributesclasses",
	"VolumeSnapshotClass": "volumesnapshotclasses",
}

// TestTheStatusOfTheDriftCheckListsTheObjectsOfTheBundle: the generator lists them without a build, for oc adm inspect. The build says what
// the bundle really has in the cluster of the controller.
func TestTheStatusOfTheDriftCheckListsTheObjectsOfTheBundle(t *testing.T) {
	for name, spec := range specs() {
		spec.DriftCheck.Schedule = "@daily"
		for _, target := range targets {
			t.Run(name+"/"+string(target), func(t *testing.T) {
				r := decide(t, spec, clouds["topology on"], target)
				var want []bundle.Object
				for _, o := range build(t, r, v1alpha1.Kustomize) {
					if o.Plane == "guest" {
						continue
					}
					want = append(want, objectOf(t, o))
				}
				slices.SortFunc(want, func(a, b bundle.Object) int {
					return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
				})
				got, err := bundle.BesideTheController(r, verify.Chart)
				if err != nil || len(got) == 0 {
					t.Fatal(err, got)
				}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("(-built +listed):\n%s", diff)
				}
			})
		}
	}
}

func objectOf(t *testing.T, o verify.Object) bundle.Object {
	t.Helper()
	version, _ := o.Fields["apiVersion"].(string)
	group, _, grouped := strings.Cut(version, "/")
	if !grouped {
		group = ""
	}
	resource := plurals[o.Kind()]
	if resource == "" {
		t.Errorf("the test has no resource of kind %s", o.Kind())
	}
	return bundle.Object{Group: group, Resource: resource, Namespace: o.Namespace(), Name: o.Name()}
}
