//go:build hypershift

package hypershift

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test provisions, attaches, resizes, snapshots, restores and deletes in the guest, with each way to give the sidecars access to it. Then it
// compares the calls to both API servers with what may be called.
func TestAVolumeLivesThroughTwoClusters(t *testing.T) {
	for number, mode := range []string{modeAdmin, modeToken} {
		t.Run(mode, func(t *testing.T) {
			h := startHosted(t)
			p := h.install(t, mode, number)
			begin := time.Now()
			h.live(t)
			h.gone(t)
			if n := p.restarted(); len(n) > 0 {
				t.Errorf("containers ended by themselves: %v", n)
			}
			p.stop(t)
			checkAudit(t, h.management, h.guest, mode)
			h.follow(t, "Upgrade")
			h.remove(t)
			t.Logf("measured: %s: a volume's life in %.0f s", mode, time.Since(begin).Seconds())
		})
	}
}

// remove follows the how-to, and looks for what is left.
func (h *hosted) remove(t *testing.T) {
	t.Helper()
	ended := make(chan struct{})
	var kubelet sync.WaitGroup
	kubelet.Go(func() { // confirms that the pods of the nodes have ended, as kubelet would; the namespace waits for it
		for {
			_, _ = h.guest.try("", "delete", "pods", "--all", "--force", "--grace-period=0", "--namespace="+guestNamespace)
			select {
			case <-ended:
				return
			case <-time.After(2 * time.Second):
			}
		}
	})
	t.Cleanup(func() { close(ended); kubelet.Wait() })
	h.follow(t, "Remove")
	for _, c := range []*cluster{h.management, h.guest} {
		kinds := strings.Fields(c.kubectl(t, "api-resources", "--verbs=list,delete", "-o", "name"))
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "endpoints" }) // deprecated, which the API server warns of
		if left := c.kubectl(t, "get", strings.Join(kinds, ","), "--all-namespaces", "--selector=app.kubernetes.io/name=cinder-csi", "-o", "name"); left != "" {
			t.Errorf("objects of the bundle are left in the %s cluster:\n%s", c.name, left)
		}
	}
	h.management.kubectl(t, "get", "secret", "tenant-a-cloud-credentials", "--namespace="+hostedNamespace)
}

const space = "hypershift-test"

// claims are two claims of a class; the second is restored from a snapshot of the first.
func (h *hosted) claim(t *testing.T, name, size, source string) {
	t.Helper()
	class := h.guest.kubectl(t, "get", "storageclasses", "-o", "jsonpath={.items[0].metadata.name}")
	if source != "" {
		source = "\n  dataSource: {apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: " + source + "}"
	}
	h.guest.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  storageClassName: %[3]s
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: %[4]s}}%[5]s
---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  terminationGracePeriodSeconds: 0
  # All in one zone: a volume from a snapshot is in the zone of the snapshot.
  nodeSelector: {kubernetes.io/hostname: %[6]s}
  containers: [{name: c, image: none, volumeMounts: [{name: v, mountPath: /v}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: %[1]s}}]
`, name, space, class, size, source, h.servers[0].Name))
}

func (h *hosted) live(t *testing.T) {
	h.guest.kubectl(t, "create", "namespace", space)
	h.guest.kubectl(t, "wait", "--namespace="+space, "--for=create", "serviceaccount/default", "--timeout=30s")
	h.claim(t, "first", "1Gi", "")
	h.attached(t, "first")
	h.guest.kubectl(t, "patch", "pvc", "first", "--namespace="+space, "-p", `{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`)
	volume := h.guest.kubectl(t, "get", "pvc", "first", "--namespace="+space, "-o", "jsonpath={.spec.volumeName}")
	h.guest.kubectl(t, "wait", "pv/"+volume, "--for=jsonpath={.spec.capacity.storage}=2Gi", "--timeout=180s")
	class := h.guest.kubectl(t, "get", "volumesnapshotclasses", "-o", "jsonpath={.items[0].metadata.name}")
	h.guest.apply(t, fmt.Sprintf("apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: saved, namespace: %s}\n"+
		"spec: {volumeSnapshotClassName: %s, source: {persistentVolumeClaimName: first}}\n", space, class))
	h.guest.kubectl(t, "wait", "volumesnapshot/saved", "--namespace="+space, "--for=jsonpath={.status.readyToUse}=true", "--timeout=180s")
	h.claim(t, "restored", "2Gi", "saved")
	h.attached(t, "restored")
	if n := len(h.openstack.ofCluster(t, "volumes")); n != 2 {
		t.Errorf("want two volumes in Cinder with the infrastructure ID, got %d", n)
	}
}

// attached waits until the volume of a claim is attached to the node that the scheduler chose for its pod.
func (h *hosted) attached(t *testing.T, name string) {
	t.Helper()
	h.guest.kubectl(t, "wait", "pvc/"+name, "--namespace="+space, "--for=jsonpath={.status.phase}=Bound", "--timeout=180s")
	volume := h.guest.kubectl(t, "get", "pvc", name, "--namespace="+space, "-o", "jsonpath={.spec.volumeName}")
	eventually(t, 3*time.Minute, "the volume of claim "+name+" attached", func() error {
		out := h.guest.kubectl(t, "get", "volumeattachments", "-o", `jsonpath={range .items[*]}{.spec.source.persistentVolumeName}={.status.attached}{"\n"}{end}`)
		if !strings.Contains(out, volume+"=true") {
			return fmt.Errorf("the attachments are %q", out)
		}
		return nil
	})
}

// gone deletes everything and waits until nothing is left in the guest and in Cinder.
func (h *hosted) gone(t *testing.T) {
	h.guest.kubectl(t, "delete", "pods", "--all", "--force", "--grace-period=0", "--namespace="+space)
	h.guest.kubectl(t, "delete", "volumesnapshots,persistentvolumeclaims", "--all", "--namespace="+space, "--timeout=180s")
	eventually(t, 4*time.Minute, "everything deleted", func() error {
		left := h.guest.kubectl(t, "get", "persistentvolumes,volumeattachments,volumesnapshotcontents", "-o", "name")
		left += strings.Join(h.openstack.ofCluster(t, "volumes"), " ") + strings.Join(h.openstack.ofCluster(t, "snapshots"), " ")
		if left != "" {
			return fmt.Errorf("there are %s", left)
		}
		return nil
	})
	h.guest.kubectl(t, "delete", "namespace", space, "--timeout=60s")
}
