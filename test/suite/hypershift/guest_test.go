//go:build hypershift

package hypershift

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// What the administrator of the guest writes. Each object has the name of the attempt.
const (
	persistentVolume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s, annotations: {pv.kubernetes.io/provisioned-by: %[4]s}}
spec:
  storageClassName: hostile
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  persistentVolumeReclaimPolicy: %[3]s
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: hypershift-test, name: %[1]s}
  csi: {driver: %[4]s, volumeHandle: %[2]q, fsType: ext4}
---
`
	claimed = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s, namespace: hypershift-test}
spec:
  storageClassName: %[2]s
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Gi}}
  %[3]s
`
	// released is a volume whose claim is gone.
	released = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s, annotations: {pv.kubernetes.io/provisioned-by: %[3]s}}
spec:
  storageClassName: hostile
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  persistentVolumeReclaimPolicy: Delete
  claimRef: {apiVersion: v1, kind: PersistentVolumeClaim, namespace: hypershift-test, name: %[1]s, uid: 5d3f6c1e-0000-4000-8000-000000000001}
  csi: {driver: %[3]s, volumeHandle: %[2]q, fsType: ext4}
`
	content = `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotContent
metadata: {name: %[1]s, finalizers: [snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection]}
spec:
  driver: ` + driverName + `
  deletionPolicy: %[2]s
  volumeSnapshotClassName: hostile
  source: {%[3]s}
  volumeSnapshotRef: {apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshot, namespace: hypershift-test, name: %[1]s%[4]s}
`
	// inline is an attachment that has the volume itself.
	inline = `
apiVersion: storage.k8s.io/v1
kind: VolumeAttachment
metadata: {name: %[1]s}
spec:
  attacher: %[2]s
  nodeName: %[3]s
  source: {inlineVolumeSpec: {accessModes: [ReadWriteOnce], csi: {driver: %[2]s, volumeHandle: %[4]q, fsType: ext4}}}
`
	classes = `
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: hostile}
driver: ` + driverName + `
deletionPolicy: Delete
parameters: {force-create: "true"}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: hostile-backup}
driver: ` + driverName + `
deletionPolicy: Delete
parameters: {type: backup, force-create: "true", backup-max-duration-seconds-per-gb: "300"}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: hostile}
driverName: ` + driverName + `
parameters: {metadata.team: hostile}
---
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: hostile-mark}
driverName: ` + driverName + `
parameters: {metadata.cinder.csi.openstack.org/cluster: ` + otherCluster + `}
`
)

// prepare makes the classes of the attempts and their namespace.
func (h *hosted) prepare(t *testing.T) {
	t.Helper()
	h.guest.kubectl(t, "create", "namespace", space)
	h.guest.apply(t, classes)
	h.class(t, "hostile", "Immediate", "")
	h.class(t, "hostile-late", "WaitForFirstConsumer", "")
}

func (h *hosted) class(t *testing.T, name, mode, parameter string) {
	t.Helper()
	h.guest.apply(t, fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: %s}\nprovisioner: %s\nallowVolumeExpansion: true\nvolumeBindingMode: %s\n"+
		"allowedTopologies: [{matchLabelExpressions: [{key: %s, values: [%s]}]}]\nparameters:\n  csi.storage.k8s.io/fstype: ext4\n  %s\n", name, driverName, mode, topologyKey, h.servers[0].Zone, parameter))
}

// static makes a PersistentVolume with a handle, and its claim.
func (h *hosted) static(t *testing.T, name, handle, policy string) {
	t.Helper()
	h.guest.apply(t, fmt.Sprintf(persistentVolume, name, handle, policy, driverName)+fmt.Sprintf(claimed, name, "hostile", "volumeName: "+name))
}

// dynamic makes a claim that the provisioner serves.
func (h *hosted) dynamic(t *testing.T, name, class, more string) {
	t.Helper()
	h.guest.apply(t, fmt.Sprintf(claimed, name, class, more))
}

func (h *hosted) attachment(t *testing.T, volume, node string) {
	t.Helper()
	h.guest.apply(t, fmt.Sprintf("apiVersion: storage.k8s.io/v1\nkind: VolumeAttachment\nmetadata: {name: %[1]s}\nspec: {attacher: %[2]s, nodeName: %[3]s, source: {persistentVolumeName: %[1]s}}\n", volume, driverName, node))
}

func (h *hosted) snapshot(t *testing.T, name, class, source string) {
	t.Helper()
	if class != "" {
		class = "volumeSnapshotClassName: " + class + ", "
	}
	h.guest.apply(t, fmt.Sprintf("apiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshot\nmetadata: {name: %s, namespace: %s}\nspec: {%ssource: {%s}}\n", name, space, class, source))
}

// field is one field of an object, empty if there is none.
func (h *hosted) field(kind, name, path string) string {
	out, err := h.guest.try("", "get", kind, name, "--namespace="+space, "--ignore-not-found", "-o", "jsonpath="+path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(out)
}

func equals(kind, path, want string) func(h *hosted, name string) bool {
	return func(h *hosted, name string) bool { return h.field(kind, name, path) == want }
}

func attachment(attached string) func(h *hosted, name string) bool {
	return equals("volumeattachment", "{.status.attached}", attached)
}

func gone(kind string) func(h *hosted, name string) bool {
	return func(h *hosted, name string) bool {
		out, err := h.guest.try("", "get", kind, name, "--ignore-not-found", "-o", "name")
		return err == nil && out == ""
	}
}

var (
	bound = equals("pvc", "{.status.phase}", "Bound")
	ready = equals("volumesnapshot", "{.status.readyToUse}", "true")
)

// events are those about the objects of an attempt.
func (h *hosted) events(name, selector string) string {
	out, _ := h.guest.try("", "get", "events", "--all-namespaces", "--field-selector=involvedObject.name="+name+","+selector, "-o", `jsonpath={range .items[*]}{.reason} {.message}{"\n"}{end}`)
	return out
}

// logged are the lines of a container of the controller that have a text.
func (h *hosted) logged(container, text string) (lines string) {
	log, _ := os.ReadFile(h.pod.log(container))
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, text) {
			lines += line
		}
	}
	return lines
}

// forge writes into the status of an object what only its controller would write, and that a snapshot is ready. A controller that is faster may
// win, so it is tried again.
func (h *hosted) forge(kind, name, fields string) {
	_, _ = h.guest.try("", "patch", kind, name, "--namespace="+space, "--subresource=status", "--type=merge", "-p", `{"status":{"readyToUse":true,"error":null,`+fields+`}}`)
}

// answer is everything that the guest reads about an attempt: events and states of the objects with its name.
func (h *hosted) answer(name string) string {
	answer := h.events(name, "type=Warning")
	for _, kind := range []string{"volumeattachment", "volumesnapshotcontent", "volumesnapshot"} {
		answer += h.field(kind, name, "{.status}") + "\n"
	}
	return answer
}

// forget takes the objects of an attempt away. Those that the driver has served end with it, the others without their finalizers.
func (h *hosted) forget(t *testing.T, name string, served bool) {
	t.Helper()
	for _, objects := range [][]string{
		{"volumeattachment/" + name},
		{"volumesnapshot/" + name, "pvc/" + name, "pvc/" + name + "-source", "--namespace=" + space},
		{"volumesnapshotcontent/" + name, "pv/" + name, "pv/" + name + "-source"},
	} {
		args := append([]string{"delete", "--ignore-not-found", "--timeout=120s", fmt.Sprintf("--wait=%t", served)}, objects...)
		deleted := h.guest.kubectl(t, args...)
		for line := range strings.Lines(deleted) {
			object := strings.Trim(strings.Fields(line)[0]+"/"+strings.Fields(line)[1], `"`)
			object = strings.ReplaceAll(object, `"`, "")
			_, _ = h.guest.try("", "patch", object, "--namespace="+space, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		}
	}
}
