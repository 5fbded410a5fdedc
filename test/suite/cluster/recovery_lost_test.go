//go:build cluster

package cluster

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/appendlog"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// loseCluster loses etcd and with it the cluster, twice. The first new cluster has the ID of the lost one. The second one has another, and a driver that
// refuses the volumes of others: the commands that `kubectl cinder recover` prints change the mark.
func loseCluster(t *testing.T, c *cluster) {
	r := &recovery{cluster: c, began: time.Now()}
	r.install(t, "first", false)
	r.step(t, "bundle installed")
	r.fill(t)
	shop := r.in("shop")
	ledger := writers{name: "ledger", replicas: 2}
	shop.startWriters(t, ledger, "node-az1")
	saved := r.save(t)
	r.step(t, "%d volumes written, a snapshot and a backup taken", len(r.data)+ledger.replicas)

	lines := shop.logs(t, ledger)
	r.lose(t)
	r.install(t, "first", false)
	r.step(t, "bundle installed in the new cluster, by its README")
	r.recover(t, "first", "")
	r.read(t)
	r.ledger(t, ledger, lines)
	r.restore(t, saved)
	r.step(t, "pods started, every byte read")

	lines = shop.logs(t, ledger)
	r.lose(t)
	r.install(t, "second", true)
	r.step(t, "bundle with another cluster ID and protection installed")
	r.recover(t, "first", "second")
	r.read(t)
	r.ledger(t, ledger, lines)
	r.step(t, "pods started, every byte read")
	r.delete(t)
	r.remove(t)
	r.step(t, "everything deleted")
}

// lose loses the cluster.
func (r *recovery) lose(t *testing.T) {
	t.Helper()
	testenv.Must(t, r.etcd(t.Context(), "lose"))
	if left := r.kubectl(t, "get", "persistentvolumes", "-o", "name"); left != "" {
		t.Fatalf("etcd was lost, and the cluster has %s", left)
	}
	r.step(t, "etcd lost, new control plane and nodes ready")
}

// save takes a snapshot and a backup of two volumes, and overwrites the first. Both are in az1, where the bed has the backup service. It gives the names of the VolumeSnapshots, and the sums of their bytes.
func (r *recovery) save(t *testing.T) map[string]datum {
	t.Helper()
	saved := map[string]datum{"monday": r.data[0], "tuesday": r.data[1]}
	classes := map[string]string{"monday": r.snapshotClass(t), "tuesday": r.backupClass(t)}
	for name, d := range saved {
		r.apply(t, snapshotManifest(name, d.name, classes[name], d.namespace))
		r.kubectl(t, "wait", "volumesnapshot/"+name, "--namespace="+d.namespace, "--for=jsonpath={.status.readyToUse}=true", atMost)
	}
	d := &r.data[0]
	if d.sum = r.in(d.namespace).write(t, d.name, d.file(), "later"); d.sum == saved["monday"].sum {
		t.Fatal("the bytes of before and after the snapshot are the same")
	}
	return saved
}

func (r *recovery) backupClass(t *testing.T) string {
	t.Helper()
	out := r.kubectl(t, "get", "volumesnapshotclasses", "-o", `jsonpath={.items[?(@.parameters.type=="backup")].metadata.name}`)
	if len(strings.Fields(out)) != 1 {
		t.Fatalf("want one class for backups, got %q", out)
	}
	return out
}

// recover follows the page after the loss of a cluster: detach, write the documents, create the namespaces, apply.
func (r *recovery) recover(t *testing.T, old, id string) {
	t.Helper()
	args := []string{"recover", "--cluster-id", old, "--os-cloud", "lab-demo", "--classes-from-cluster"}
	if id != "" {
		args = append(args, "--new-cluster-id", id)
	}
	if id != "" {
		r.refused(t, args)
	}
	// Before the commands, which give the volumes to the new ID: then nothing has the mark of the lost cluster.
	documents := testenv.Value(r.cinderCommand(t, args...))(t)
	r.step(t, "recover has written %d PersistentVolumes", strings.Count(documents, "kind: PersistentVolume\n"))
	// The list is of this moment: a command for a volume that was detached since then fails.
	commands := testenv.Value(r.cinderCommand(t, append(args, "-o", "commands")...))(t)
	r.shell(t, commands)
	r.step(t, "%d printed commands run: servers and marks", strings.Count(commands, "\nopenstack"))
	for _, namespace := range teams {
		if r.kubectl(t, "get", "namespace", namespace, "--ignore-not-found") == "" {
			r.in(namespace).makeNamespace(t)
		}
	}
	r.apply(t, documents)
	for _, namespace := range teams {
		r.kubectl(t, "wait", "pvc", "--all", "--namespace="+namespace, "--for=jsonpath={.status.phase}=Bound", atMost)
	}
	r.step(t, "documents applied, all claims Bound")
}

// refused proves that the commands are needed: before they have run, the driver refuses a volume with the mark of the lost cluster.
func (r *recovery) refused(t *testing.T, args []string) {
	t.Helper()
	documents := testenv.Value(r.cinderCommand(t, append(args, "--namespace", "bank")...))(t)
	r.in("bank").makeNamespace(t)
	r.apply(t, documents)
	d := r.data[4]
	bank := r.in("bank")
	bank.create(t, nil, d.pod())
	eventually(t, patience, "the volume of the lost cluster refused", func() error {
		out := bank.kubectl(t, "get", "volumeattachments", "-o", "jsonpath={.items[*].status.attachError.message}")
		if !strings.Contains(out, "cluster") || !strings.Contains(out, "first") {
			return fmt.Errorf("the errors of the VolumeAttachments are %q", out)
		}
		return nil
	})
	if out, _ := r.cinderCommand(t, "volume", "bank/"+d.name, "--os-cloud", "lab-demo"); !strings.Contains(out, "Cause: volume.other-cluster ") {
		t.Errorf("kubectl cinder volume does not say that the volume has the mark of another cluster: %s", out)
	}
	bank.deletePod(t, d.name)
}

// ledger starts the StatefulSet again, and looks for every synced line of before.
func (r *recovery) ledger(t *testing.T, w writers, before map[string]appendlog.Log) {
	t.Helper()
	shop := r.in("shop")
	shop.place(t, w, zoneLabel+": az1")
	for _, pod := range w.pods() {
		shop.kubectl(t, "wait", "--namespace=shop", "--for=create", "pod/"+pod, atMost)
		shop.kubectl(t, "wait", "--namespace=shop", "--for=condition=Ready", "pod/"+pod, atMost)
		log, old := shop.awaitLines(t, pod, 5), before[pod]
		last := old[len(old)-1].Writer
		// Each line is synced before the next is written, so at most the last one may be lost.
		if kept := log.Of(last); kept < old.Of(last)-1 {
			t.Errorf("pod %s: %d lines were synced, %d are left", pod, old.Of(last)-1, kept)
		}
	}
}

// restore makes a claim from each recovered VolumeSnapshot, and compares its bytes.
func (r *recovery) restore(t *testing.T, saved map[string]datum) {
	t.Helper()
	for name, d := range saved {
		own := r.in(d.namespace)
		own.kubectl(t, "wait", "volumesnapshot/"+name, "--namespace="+d.namespace, "--for=jsonpath={.status.readyToUse}=true", atMost)
		own.start(t, []claim{{name: name, gib: 1, class: d.class, from: name}}, pod{name: name, claim: name, zone: d.zone})
		own.expectSum(t, name, "/data/file", d.sum)
	}
	fmt.Printf("measured: recovery  - %d recovered snapshots restored, %d MiB compared\n", len(saved), len(saved)*written)
}
