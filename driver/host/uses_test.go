package host

import (
	"slices"
	"strings"
	"testing"
)

func TestAPathInAPodsVolumeIsTheTenants(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/var/lib/kubelet/plugins/kubernetes.io/csi/volumeDevices/publish/pv/uid":        false,
		"/data/k8s/plugins/kubernetes.io/csi/volumeDevices/staging/pv/uid":               false,
		"/var/lib/kubelet/pods/uid/volumeDevices/kubernetes.io~csi/pv":                   false,
		"/var/lib/kubelet/pods/uid/volume-subpaths/m/c/0":                                true,
		"/var/lib/kubelet/pods/uid/volumes/kubernetes.io~empty-dir/m/volumeDevices/node": true,
		"/var/lib/kubelet/pods/uid/volumes/m/pods/uid/volumeDevices/node":                true,
		"/var/lib/kubelet/pods": false,
		"/mnt/target":           false,
		"":                      false,
	} {
		if got := inPodsVolume(path); got != want {
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
