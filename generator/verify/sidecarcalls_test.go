package verify_test

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

// The search for orphaned finalizers begins with a list of snapshots, and goes on only if that is allowed. Without the right, each start of the
// provisioner in a cluster with the snapshot CRDs is a denied call.
func TestTheProvisionerLooksForSnapshotsOnlyWhereItMay(t *testing.T) {
	for _, target := range targets {
		for _, snapshots := range []bool{true, false} {
			spec := v1alpha1.Spec{Snapshots: v1alpha1.Snapshots{Enabled: &snapshots}}
			r := decide(t, spec, clouds["topology on"], target)
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				objects := build(t, r, format)
				interval := "0s"
				if may := slices.ContainsFunc(rightsOf(t, objects, "-provisioner-snapshots"), func(right string) bool {
					return strings.HasPrefix(right, "volumesnapshots: ") && strings.Contains(right, " list ")
				}); may {
					interval = "5m"
				}
				if want := map[bool]string{true: "5m", false: "0s"}[snapshots]; interval != want {
					t.Errorf("%s %s, snapshots %t: the rights of the provisioner allow an interval of %s", target, format, snapshots, interval)
				}
				const flag = "--snapshot-orphan-sweep-interval="
				if got, want := flagOf(t, objects, "provisioner", flag), flag+interval; got != want {
					t.Errorf("%s %s, snapshots %t: want %s, got %s", target, format, snapshots, want, got)
				}
			}
		}
	}
}

// A sidecar with fewer workers than the others is where the work of a busy tenant delays that of all. The provisioner's own default is 100.
func TestTheSidecarsHaveAsManyWorkers(t *testing.T) {
	for _, target := range targets {
		r := decide(t, v1alpha1.Spec{}, clouds["topology on"], target)
		for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
			objects := build(t, r, format)
			want := map[string]string{
				"attacher": "--worker-threads=100", "resizer": "--workers=100", "snapshotter": "--worker-threads=100", "provisioner": "",
			}
			got := map[string]string{}
			for sidecar := range want {
				got[sidecar] = flagOf(t, objects, sidecar, "--worker")
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: workers of the sidecars (-want +got):\n%s", target, format, diff)
			}
		}
	}
}

// Each row of the table reaches the containers in both forms, under the resources of the configuration.
func TestTheSizeDecidesMemoryAndTheAttacher(t *testing.T) {
	for _, size := range v1alpha1.ClusterSizes {
		spec := v1alpha1.Spec{Size: size.Name}
		spec.Roles.Controller.Resources = map[string]v1alpha1.Resources{"resizer": {Requests: map[string]string{"memory": "300Mi"}}}
		want := maps.Clone(size.Memory)
		want["resizer"] = "300Mi"
		for _, target := range targets {
			r := decide(t, spec, clouds["topology on"], target)
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				objects := build(t, r, format)
				_, pod := controllerPod(t, objects)
				got := map[string]string{}
				for _, c := range pod.Spec.Containers {
					if want[c.Name] != "" {
						got[c.Name] = c.Resources.Requests.Memory().String()
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s %s %s: memory (-want +got):\n%s", size.Name, target, format, diff)
				}
				for flag, value := range map[string]string{
					"--kube-api-qps=": strconv.Itoa(size.Attacher.QPS), "--kube-api-burst=": strconv.Itoa(size.Attacher.Burst), "--reconcile-sync=": size.Attacher.ReconcileSync,
				} {
					if got := flagOf(t, objects, "attacher", flag); got != flag+value {
						t.Errorf("%s %s %s: want %s of the attacher, got %s", size.Name, target, format, flag+value, got)
					}
				}
			}
		}
	}
}

// flagOf is the argument of a sidecar that begins with a text, with the values of the settings in it. It is empty where the sidecar has none.
func flagOf(t *testing.T, objects []verify.Object, sidecar, begin string) string {
	t.Helper()
	o, pod := controllerPod(t, objects)
	i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == sidecar })
	if i < 0 {
		t.Fatalf("%s has no container %s", o, sidecar)
	}
	args := pod.Spec.Containers[i].Args
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, begin) })
	if at < 0 {
		return ""
	}
	arg := args[at]
	for _, settings := range ofKind(objects, "ConfigMap") {
		if settings.Name() != "cinder-csi-controller-settings" {
			continue
		}
		data, _ := settings.Fields["data"].(map[string]any)
		for name, value := range data {
			arg = strings.ReplaceAll(arg, "$("+name+")", value.(string))
		}
	}
	return arg
}

func ofKind(objects []verify.Object, kind string) []verify.Object {
	objects = slices.DeleteFunc(slices.Clone(objects), func(o verify.Object) bool { return o.Kind() != kind })
	slices.SortFunc(objects, func(a, b verify.Object) int { return strings.Compare(a.String(), b.String()) })
	return objects
}
