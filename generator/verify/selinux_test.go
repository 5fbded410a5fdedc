package verify_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// kubelet passes a context only if the CSIDriver says so, and mount(8) applies it only with these directories. One without the other makes
// volumes unreadable, or mounts nobody uses.
func TestKubeletPassesSELinuxContextsExactlyWhereTheDriverSeesTheSELinuxOfTheHost(t *testing.T) {
	for _, target := range targets {
		for set, on := range map[string]bool{"": target != v1alpha1.Vanilla, v1alpha1.Enabled: true, v1alpha1.Disabled: false} {
			for _, format := range []v1alpha1.Format{v1alpha1.Kustomize, v1alpha1.Helm} {
				t.Run(strings.Join([]string{string(target), string(format), set}, "/"), func(t *testing.T) {
					// The drain hook adds a mount, too: the kubelet directory must find its place behind all of them.
					driver := v1alpha1.Driver{SELinux: set, KubeletDir: "/var/lib/k0s/kubelet"}
					spec := v1alpha1.Spec{Driver: driver, NodeLifecycle: v1alpha1.NodeLifecycle{DrainHook: true}}
					var drivers, daemonSets int
					for _, o := range build(t, decide(t, spec, clouds["topology on"], target), format) {
						switch o.Kind() {
						case "CSIDriver":
							drivers++
							if got, _, _ := field.Find(o.Fields, "spec.seLinuxMount"); got != on {
								t.Errorf("seLinuxMount is %v, want %t", got, on)
							}
						case "DaemonSet":
							daemonSets++
							pod := podOf(t, o)
							i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == "driver" })
							var seen []string
							for _, m := range pod.Spec.Containers[i].VolumeMounts {
								if m.Name == "etc-selinux" || m.Name == "sys-fs" {
									seen = append(seen, m.MountPath)
								}
								if m.Name == "kubelet-dir" && m.MountPath != driver.KubeletDir {
									t.Errorf("kubelet-dir is mounted at %s", m.MountPath)
								}
							}
							if slices.Equal(seen, []string{"/etc/selinux", "/sys/fs"}) != on || !on && len(seen) > 0 {
								t.Errorf("the driver mounts %q, want both directories: %t", seen, on)
							}
						}
					}
					if drivers != 1 || daemonSets != 1 {
						t.Errorf("%d CSIDrivers, %d DaemonSets", drivers, daemonSets)
					}
				})
			}
		}
	}
}
