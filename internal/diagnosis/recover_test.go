package diagnosis_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis"
)

func id(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

// madeFor is the metadata that the driver gives a volume (driver/controller, TestCreateVolume).
func madeFor(namespace, claim, name string, more ...string) map[string]string {
	m := map[string]string{
		"cinder.csi.openstack.org/cluster": "blue", "csi.storage.k8s.io/pvc/namespace": namespace, "csi.storage.k8s.io/pvc/name": claim, "csi.storage.k8s.io/pv/name": name,
	}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return m
}

const modeKey, fsKey = "cinder.csi.openstack.org/volume-mode", "cinder.csi.openstack.org/fs-type"

func lostVolume(n int, metadata map[string]string) diagnosis.RecoverableVolume {
	v := diagnosis.RecoverableVolume{Type: "fast"}
	v.ID, v.Status, v.Size, v.Zone, v.Metadata = id(n), "available", 10, "az1", metadata
	return v
}

func lostSnapshot(n, of int, status string, metadata map[string]string) diagnosis.RecoverableSnapshot {
	metadata["cinder.csi.openstack.org/cluster"] = "blue"
	return diagnosis.RecoverableSnapshot{ID: id(n), Status: status, Volume: id(of), Metadata: metadata}
}

// blue is what the lost cluster left: each kind of volume, and what is not to be recovered.
func blue() diagnosis.Remains {
	used := lostVolume(3, madeFor("shop", "cache", "pvc-3", modeKey, "Filesystem"))
	used.Status = "in-use"
	used.Attachments = append(used.Attachments, struct {
		Server string `json:"server_id"`
	}{id(90)})
	far := lostVolume(4, madeFor("bank", "raw", "pvc-4", modeKey, "Block", "cinder.csi.openstack.org/shared", "true"))
	far.Zone, far.Type = "rack one", "shared"
	going := lostVolume(6, madeFor("shop", "gone", "pvc-6", modeKey, "Filesystem"))
	going.Status = "deleting"
	empty := lostVolume(10, madeFor("shop", "restored", "pvc-10", modeKey, "Filesystem", contract.MetadataRestore, id(30)))
	other := lostVolume(7, madeFor("shop", "theirs", "pvc-7", modeKey, "Filesystem"))
	other.Metadata["cinder.csi.openstack.org/cluster"] = "green"
	return diagnosis.Remains{
		Volumes: []diagnosis.RecoverableVolume{
			lostVolume(1, madeFor("shop", "data", "pvc-1", modeKey, "Filesystem", fsKey, "xfs")),
			lostVolume(2, madeFor("shop", "old", "pvc-2")), used, far,
			lostVolume(5, map[string]string{"cinder.csi.openstack.org/cluster": "blue", modeKey: "Filesystem"}), going, other, empty,
			lostVolume(8, madeFor("bank", "twice", "pvc-8", modeKey, "Filesystem", fsKey, "ext4")),
			lostVolume(9, madeFor("bank", "twice", "pvc-8", modeKey, "Filesystem", fsKey, "ext4")),
		},
		Snapshots: []diagnosis.RecoverableSnapshot{
			lostSnapshot(20, 1, "available", map[string]string{"csi.storage.k8s.io/volumesnapshot/namespace": "shop", "csi.storage.k8s.io/volumesnapshot/name": "monday", "csi.storage.k8s.io/volumesnapshotcontent/name": "snapcontent-20"}),
			lostSnapshot(21, 1, "error", map[string]string{}),
			lostSnapshot(22, 1, "available", map[string]string{"cinder.csi.openstack.org/temporary": "true"}),
		},
		Backups: []diagnosis.RecoverableSnapshot{
			lostSnapshot(30, 2, "available", map[string]string{"csi.storage.k8s.io/volumesnapshot/namespace": "shop", "csi.storage.k8s.io/volumesnapshot/name": "tuesday", "csi.storage.k8s.io/volumesnapshotcontent/name": "snapcontent-30", "type": "backup"}),
		},
	}
}

var options = diagnosis.RecoverOptions{
	Cluster: "blue", Driver: "cinder.csi.openstack.org", Classes: map[string]string{"fast": "cinder-fast"}, Zones: contract.ZoneMap{"compute-1": "az1"},
}

func printed(t *testing.T, r diagnosis.Recovery) string {
	t.Helper()
	var text strings.Builder
	if err := diagnosis.PrintRecovery(&text, r, 100); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// test/suite/apiserver applies such a recovery to a real API server.
func TestWhatALostClusterLeftBecomesObjectsOfKubernetes(t *testing.T) {
	golden(t, "recovered.yaml", printed(t, diagnosis.Recover(blue(), options)))
}

// volumesOf are the PersistentVolumes in documents, by their volume.
func volumesOf(t *testing.T, text string) map[string]corev1.PersistentVolume {
	t.Helper()
	volumes := map[string]corev1.PersistentVolume{}
	for _, document := range strings.Split(text, "\n---\n") {
		var v corev1.PersistentVolume
		if err := yaml.UnmarshalStrict([]byte(document), &v); v.Kind != "PersistentVolume" {
			continue
		} else if err != nil {
			t.Fatalf("%v: %s", err, document)
		}
		volumes[v.Spec.CSI.VolumeHandle] = v
	}
	return volumes
}

func TestNoRecoveredVolumeCanLoseItsData(t *testing.T) {
	all := volumesOf(t, printed(t, diagnosis.Recover(blue(), options)))
	if len(all) != 7 {
		t.Fatalf("want 7 PersistentVolumes, got %d", len(all))
	}
	for handle, v := range all {
		if v.Spec.CSI.VolumeAttributes[contract.ContextResizeRequired] != "true" || v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
			t.Errorf("%s: want the attribute that forbids mkfs, and Retain: %+v", handle, v.Spec)
		}
	}
}

func TestWhatTheMetadataLeavesOpenIsNoValidObject(t *testing.T) {
	r := diagnosis.Recover(blue(), options)
	all := volumesOf(t, printed(t, r))
	if mode := *all[id(2)].Spec.VolumeMode; mode != diagnosis.FillIn {
		t.Errorf("want no volume mode without metadata, got %q", mode)
	}
	if ref := all[id(5)].Spec.ClaimRef; ref.Name != diagnosis.FillIn || ref.Namespace != diagnosis.FillIn {
		t.Errorf("want no claim without metadata, got %+v", ref)
	}
	for _, n := range []int{8, 9} {
		if name := all[id(n)].Name; name != diagnosis.FillIn {
			t.Errorf("want no name for one of two volumes of a claim, got %q", name)
		}
	}
	if r.FillIns() != 4 {
		t.Errorf("want 4 objects that need a person, got %d", r.FillIns())
	}
}

func TestWhatIsRecoveredIsThatOfTheNamespaceAndTheCluster(t *testing.T) {
	in := options
	in.Namespace = "bank"
	r := diagnosis.Recover(blue(), in)
	var ids []string
	for _, o := range r.Objects {
		ids = append(ids, o.ID)
	}
	if want := []string{id(4), id(8), id(9)}; !slices.Equal(ids, want) {
		t.Errorf("want %q, got %q", want, ids)
	}
	if diff := cmp.Diff([]string{"bank"}, r.Namespaces); diff != "" {
		t.Error(diff)
	}
}

func TestAnotherClusterIDComesWithTheCommandsThatChangeTheMark(t *testing.T) {
	in := options
	in.New, in.Namespace = "red;reboot", "shop"
	var text strings.Builder
	if err := diagnosis.PrintCommands(&text, diagnosis.Recover(blue(), in)); err != nil {
		t.Fatal(err)
	}
	mark := "'cinder.csi.openstack.org/cluster=red;reboot' "
	want := "# Servers that still have a volume. Stop what uses it there first: shut the server down, or delete it.\n" +
		"openstack server remove volume " + id(90) + " " + id(3) + "\n" +
		"openstack volume set --property " + mark + id(3) + "\nopenstack volume set --property " + mark + id(1) + "\nopenstack volume set --property " + mark + id(2) + "\n" +
		"openstack volume snapshot set --property " + mark + id(20) + "\nopenstack --os-volume-api-version 3.43 volume backup set --property " + mark + id(30) + "\n"
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Error(diff)
	}
	if got := printed(t, diagnosis.Recover(blue(), options)); strings.Contains(got, "--property") {
		t.Error("a cluster with the same ID needs no other mark")
	}
}

func TestAVolumeThatAServerStillHasComesWithTheCommandThatDetachesIt(t *testing.T) {
	r := diagnosis.Recover(blue(), options)
	want := "openstack server remove volume " + id(90) + " " + id(3) + "\n"
	if got := printed(t, r); !strings.Contains(got, "\n# $ "+want) || strings.Count(got, "remove volume") != 1 {
		t.Errorf("want %q above volume %s alone: %s", want, id(3), got)
	}
	var text strings.Builder
	if err := diagnosis.PrintCommands(&text, r); err != nil || !strings.HasSuffix(text.String(), "\n"+want) || strings.Count(text.String(), "\n") != 2 {
		t.Errorf("want a comment and %q, got %v: %s", want, err, text.String())
	}
}

// A tenant of the cloud writes metadata.
func TestTextOfTheCloudWritesNoObject(t *testing.T) {
	evil := "x\n---\napiVersion: v1\nkind: Secret\u2028kind: Secret\u0085kind: Secret\rkind: Secret\x1b[2J"
	l := blue()
	for i := range l.Volumes {
		v := &l.Volumes[i]
		v.Zone, v.Type, v.Name, v.Status = evil, evil, evil, evil
		for key := range v.Metadata {
			if key != "cinder.csi.openstack.org/cluster" {
				v.Metadata[key] = evil
			}
		}
	}
	l.Volumes[0].ID = "$(reboot)"
	l.Volumes[0].Metadata = madeFor("shop", "data", "pvc-1")
	l.Snapshots[0].Metadata["csi.storage.k8s.io/volumesnapshot/name"] = evil
	l.Gaps = []diagnosis.Gap{{What: evil, Why: evil}}
	in := options
	in.New = "red"
	text := printed(t, diagnosis.Recover(l, in))
	for _, line := range regexp.MustCompile("[\n\r\u0085\u2028\u2029]").Split(text, -1) {
		if strings.HasPrefix(line, "kind: Secret") || strings.Contains(line, "\x1b") {
			t.Errorf("a line of the cloud: %q", line)
		}
	}
	if strings.Contains(text, "volumeHandle: $(reboot)") || regexp.MustCompile(`(?m)^# \$ .*reboot`).MatchString(text) {
		t.Errorf("an ID that is none: %s", text)
	}
	for handle, v := range volumesOf(t, text) {
		if v.Name != "recovered-"+handle {
			t.Errorf("want a name made of the ID, got %q", v.Name)
		}
	}
}

func TestARecoveryWithoutTheVolumesIsAnErrorAndWithoutTheBackupsAGap(t *testing.T) {
	c, _ := project(t)
	lost, err := diagnosis.ReadRemains(t.Context(), c)
	if err != nil || len(lost.Gaps) > 0 {
		t.Fatalf("%v, %+v", err, lost.Gaps)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := diagnosis.ReadRemains(ctx, c); err == nil {
		t.Error("want an error of the list of volumes")
	}
}

// Ten thousand volumes with their metadata, ten pages of Cinder. The target is a minute; the figure is in the report of the run.
func BenchmarkRecoverTenThousandVolumes(b *testing.B) {
	c, create := project(b)
	for i := range 10_000 {
		create("volume", map[string]any{"size": 1, "name": "pvc-" + strconv.Itoa(i), "metadata": madeFor("shop-"+strconv.Itoa(i%50), "data-"+strconv.Itoa(i), "pvc-"+strconv.Itoa(i), modeKey, "Filesystem", fsKey, "ext4")})
	}
	for b.Loop() {
		lost, err := diagnosis.ReadRemains(b.Context(), c)
		if err != nil {
			b.Fatal(err)
		}
		var text strings.Builder
		r := diagnosis.Recover(lost, options)
		if err := diagnosis.PrintRecovery(&text, r, 100); err != nil || len(r.Objects) != 10_000 {
			b.Fatalf("%d objects, %v", len(r.Objects), err)
		}
	}
}
