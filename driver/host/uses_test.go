package host

import (
	"slices"
	"strings"
	"testing"
)

func TestOnlyKubeletsPlacesOfBlockVolumesAreBlockTargets(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pv/uid":            true,
		"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/pv/dev/uid":                true,
		"/data/k8s/plugins/kubernetes.io/csi/volumeDevices/staging/pv/uid":                   true,
		"/var/lib/kubelet/pods/uid/volumeDevices/kubernetes.io~csi/pv":                       true,
		"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices":                           false,
		"/var/lib/kubelet/pods/uid/volume-subpaths/m/c/0":                                    false,
		"/var/lib/kubelet/pods/uid/volumes/kubernetes.io~empty-dir/m/volumeDevices/node":     false,
		"/var/lib/kubelet/pods/uid/volumes/kubernetes.io~empty-dir/volumeDevices/node":       false,
		"/var/lib/kubelet/pods/uid/volumes/kubernetes.io~empty-dir/m/csi/volumeDevices/node": false,
		"/volumeDevices/node": false,
		"":                    false,
	} {
		if got := isBlockTarget(path); got != want {
			t.Errorf("%s: want %t, got %t", path, want, got)
		}
	}
}

func TestAMessageNamesTheFirstPlacesAndCountsTheRest(t *testing.T) {
	t.Parallel()
	if got := firstFew([]string{"/a", "/b"}); got != "/a, /b" {
		t.Errorf("want both, got %q", got)
	}
	if got := firstFew(slices.Repeat([]string{"/a"}, 100)); strings.Count(got, "/a") != 8 || !strings.HasSuffix(got, " and 92 more places") {
		t.Errorf("want eight and a count, got %q", got)
	}
}
