//go:build cluster

package cluster

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// restoreEtcd gives etcd an older backup. Since then a claim was made, a claim was deleted with its volume, and a pod moved to another node. The commands
// find all three, and what the page says puts them right.
func restoreEtcd(t *testing.T, c *cluster) {
	r := &recovery{cluster: c, began: time.Now()}
	r.install(t, "first", false)
	shop := r.in("shop")
	shop.makeNamespace(t)
	var data []claim
	var pods []pod
	for _, name := range []string{"stays", "moved", "deleted"} {
		data, pods = append(data, claim{name: name, gib: 1}), append(pods, pod{name: name, claim: name, node: "node-az1"})
	}
	shop.start(t, data, pods...)
	sums := map[string]string{}
	for _, d := range data {
		sums[d.name] = shop.write(t, d.name, "/data/file", d.name)
	}
	r.step(t, "bundle installed, 3 volumes written")

	backup := filepath.Join(t.TempDir(), "etcd")
	testenv.Must(t, r.etcd(t.Context(), "save", backup))
	r.step(t, "backup of etcd taken")
	ids := map[string]string{"moved": shop.volumeOf(t, "moved"), "deleted": shop.volumeOf(t, "deleted")}
	lost, mounted := shop.volumeName(t, "deleted"), map[string]string{"moved": shop.volumeName(t, "moved")}
	shop.deletePod(t, "deleted")
	shop.kubectl(t, "delete", "pvc", "deleted", "--namespace=shop", atMost)
	shop.kubectl(t, "wait", "--for=delete", "persistentvolume/"+lost, atMost)
	shop.deletePod(t, "moved")
	shop.start(t, []claim{{name: "fresh", gib: 1}}, pod{name: "moved", claim: "moved", node: "node-az1-2"}, pod{name: "fresh", claim: "fresh", node: "node-az1"})
	sums["moved"] = shop.write(t, "moved", "/data/file", "after the backup")
	sums["fresh"] = shop.write(t, "fresh", "/data/file", "fresh")
	ids["fresh"], mounted["fresh"] = shop.volumeOf(t, "fresh"), shop.volumeName(t, "fresh")
	r.step(t, "afterwards: 1 volume made, 1 deleted, 1 moved")

	testenv.Must(t, r.etcd(t.Context(), "restore", backup))
	r.step(t, "etcd restored, API server, controllers and kubelets started")
	r.stopController(t)
	r.named(t, lost, ids)
	r.step(t, "lost, orphans and list --wrong name all of them")

	r.putEtcdRight(t, lost, ids, mounted)
	for name, sum := range sums {
		if name != "deleted" {
			shop.expectSum(t, name, "/data/file", sum)
		}
	}
	fmt.Printf("measured: recovery  - 3 volumes read, %d MiB compared\n", 3*written)
	r.step(t, "put right by the page")
	eventually(t, patience, "no volume has a finding", func() error {
		_, err := r.cinderCommand(t, "list", "--wrong", "--os-cloud", "lab-demo")
		return err
	})
	r.deleteTeam(t, "shop")
	r.remove(t)
	r.step(t, "everything deleted")
}

// stopController stops the controller of the driver, as the page says: it must delete nothing before a person has looked.
func (r *recovery) stopController(t *testing.T) {
	t.Helper()
	r.kubectl(t, "scale", "deployment/cinder-csi-controller", "--namespace="+namespaces["controller"], "--replicas=0")
	r.kubectl(t, "wait", "pods", "--selector=app=cinder-csi-controller", "--namespace="+namespaces["controller"], "--for=delete", atMost)
}

// named fails unless each command names what it is for.
func (r *recovery) named(t *testing.T, lost string, ids map[string]string) {
	t.Helper()
	var missing struct {
		Missing []struct{ Kind, Name, ID string }
	}
	r.cinderJSON(t, &missing, "lost", "--os-cloud", "lab-demo")
	if !slices.ContainsFunc(missing.Missing, func(m struct{ Kind, Name, ID string }) bool {
		return m.Kind == "PersistentVolume" && m.Name == lost && m.ID == ids["deleted"]
	}) {
		t.Errorf("lost does not name PersistentVolume %s: %+v", lost, missing)
	}
	var orphans struct {
		Orphans []struct{ Kind, ID, For string }
	}
	r.cinderJSON(t, &orphans, "orphans", "--os-cloud", "lab-demo", "--cluster-id", "first")
	if len(orphans.Orphans) != 1 || orphans.Orphans[0].ID != ids["fresh"] || orphans.Orphans[0].For != "shop/fresh" {
		t.Errorf("want volume %s of shop/fresh as the only orphan, got %+v", ids["fresh"], orphans)
	}
	var list struct {
		Volumes []struct {
			Claim    string
			Findings []string
		}
	}
	r.cinderJSON(t, &list, "list", "--wrong", "--os-cloud", "lab-demo")
	found := map[string]string{}
	for _, v := range list.Volumes {
		found[v.Claim] = strings.Join(v.Findings, "; ")
	}
	if !strings.Contains(found["shop/deleted"], "not in this project") || !strings.Contains(found["shop/moved"], "Cinder does not") ||
		!strings.Contains(found["shop/moved"], "no VolumeAttachment") || found["shop/stays"] != "" {
		t.Errorf("the findings of list are %q", found)
	}
	for _, name := range []string{"moved", "deleted"} {
		if out, err := r.cinderCommand(t, "volume", "shop/"+name, "--os-cloud", "lab-demo"); err == nil {
			t.Errorf("volume shop/%s finds nothing: %s", name, out)
		}
	}
}

// cinderJSON reads the report of a command that may have findings.
func (r *recovery) cinderJSON(t *testing.T, into any, args ...string) {
	t.Helper()
	out, _, err := r.try(t.Context(), "", "kubectl", append(append([]string{"cinder"}, args...), "-o", "json")...)
	if decodeErr := json.Unmarshal([]byte(out), into); decodeErr != nil {
		t.Fatalf("%v; %v", decodeErr, err)
	}
}

// putEtcdRight does what the page says after a restore of etcd, in its order.
func (r *recovery) putEtcdRight(t *testing.T, lost string, ids, mounted map[string]string) {
	t.Helper()
	shop := r.in("shop")
	// The pods whose volumes are elsewhere, or gone.
	r.kubectl(t, "delete", "pods", "moved", "deleted", "--namespace=shop", "--wait=false")
	// The servers that still have a volume. The orphan and the volume that moved come from the same command.
	args := []string{"recover", "--cluster-id", "first", "--os-cloud", "lab-demo", "--classes-from-cluster", "--id", ids["fresh"] + "," + ids["moved"]}
	commands := testenv.Value(r.cinderCommand(t, append(args, "-o", "commands")...))(t)
	for name, node := range map[string]string{"moved": "node-az1-2", "fresh": "node-az1"} {
		eventually(t, patience, "node "+node+" no longer mounts the volume of "+name, func() error {
			if table := r.onNode(t, node, "cat", "/proc/self/mounts"); strings.Contains(table, mounted[name]) {
				return fmt.Errorf("it does")
			}
			return nil
		})
	}
	r.shell(t, commands)
	r.kubectl(t, "scale", "deployment/cinder-csi-controller", "--namespace="+namespaces["controller"], "--replicas=2")
	r.rolledOut(t)
	// The lost volume: its claim and its PersistentVolume go.
	r.kubectl(t, "delete", "pvc", "deleted", "--namespace=shop", atMost)
	r.kubectl(t, "delete", "persistentvolume", lost, "--ignore-not-found", atMost)
	// The orphan: its PersistentVolume and claim come back.
	documents := testenv.Value(r.cinderCommand(t, append(args[:len(args)-1], ids["fresh"])...))(t)
	r.apply(t, documents)
	r.kubectl(t, "wait", "pods", "moved", "--namespace=shop", "--for=delete", atMost)
	shop.start(t, nil, pod{name: "moved", claim: "moved", node: "node-az1"}, pod{name: "fresh", claim: "fresh", node: "node-az1-2"})
}

// deleteTeam is delete for one namespace.
func (r *recovery) deleteTeam(t *testing.T, namespace string) {
	t.Helper()
	old := teams
	defer func() { teams = old }()
	teams = []string{namespace}
	r.delete(t)
}
