//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// moveToAnotherCloud takes the volumes of a cluster to another cloud by backups, as the page says. The other cloud is a second OpenStack. It shares the
// directory of the backups with the first, and has no record of a volume or a backup. Its servers become the nodes of the new cluster.
func moveToAnotherCloud(t *testing.T, c *cluster) {
	r := &recovery{cluster: c, began: time.Now()}
	moved := &recovery{cluster: c.startSecondCloud(t)}
	leave := func() { // the nodes are those of the first cloud again
		testenv.Check(t, r.etcd(context.Background(), "lose"))
		moved.wipeCloud(t)
	}
	left := false
	t.Cleanup(func() {
		if !left {
			moved.diagnose(t)
			leave()
		}
	})
	r.step(t, "second OpenStack started, with the backups of the first")
	r.install(t, "first", false)
	r.fillIn(t, zones[0], zones[0]) // the bed has its backup service there
	for _, namespace := range teams {
		r.kubectl(t, "delete", "pods", "--all", "--namespace="+namespace, atMost)
	}
	r.step(t, "bundle installed, %d volumes written", len(r.data))
	ids := r.createBackups(t)
	r.step(t, "a backup of each volume taken")

	moved.data, moved.began = r.data, time.Now()
	for i := range moved.data {
		moved.data[i].zone = zones[i/3] // of the other cloud
	}
	moved.takeBackups(t, c, ids)
	moved.step(t, "%d backups imported and restored in the other cloud, by the page", len(ids))
	moved.lose(t)
	moved.install(t, "second", true)
	moved.step(t, "bundle installed in a new cluster on servers of the other cloud")
	moved.recover(t, "first", "second")
	moved.read(t)
	moved.step(t, "pods started, every byte read")

	left, r.began = true, time.Now()
	leave()
	r.deleteInCinder(t.Context(), t)
	r.step(t, "other cloud deleted, and the volumes and backups of the first one")
}

// startSecondCloud starts an OpenStack beside that of the bed. Only the backups are those of the bed. The cluster that it gives has the same control plane; its
// scripts and programs use the other cloud.
func (c *cluster) startSecondCloud(t *testing.T) *cluster {
	t.Helper()
	second := *c
	second.openstack = c.openstack + "-second"
	second.env = append(c.env[:len(c.env):len(c.env)], "OPENSTACK_BED="+second.openstack, "OS_CLIENT_CONFIG_FILE="+filepath.Join(second.openstack, "clouds.yaml"),
		"PORT_OFFSET=4000", "BED_ADDRESS=198.18.0.5", "BED_NODES_PER_AZ=2", "BED_BACKUPS="+filepath.Join(c.openstack, "state", "backups"), "BED_PATIENCE=5")
	second.wipeCloud(t) // what an interrupted run has left
	t.Cleanup(func() {
		if t.Failed() {
			return // the caller looks at it first
		}
		second.wipeCloud(t)
	})
	second.build(t, filepath.Join(c.repo, "test", "bed", "openstack", "up.sh"))
	return &second
}

// wipeCloud deletes the second cloud. The backups are in the directory of the first.
func (c *cluster) wipeCloud(t *testing.T) {
	t.Helper()
	if _, _, err := c.try(context.Background(), "", filepath.Join(c.repo, "test", "bed", "openstack", "down.sh"), "--wipe"); err != nil {
		t.Error(err)
	}
}

// createBackups takes a backup of each volume, as a VolumeSnapshot of the class for backups, and gives their IDs in Cinder by claim.
func (r *recovery) createBackups(t *testing.T) map[string]string {
	t.Helper()
	class, ids := r.backupClass(t), map[string]string{}
	for _, d := range r.data {
		r.apply(t, snapshotManifest(d.name, d.name, class, d.namespace))
	}
	for _, d := range r.data {
		in := "--namespace=" + d.namespace
		r.kubectl(t, "wait", "volumesnapshot/"+d.name, in, "--for=jsonpath={.status.readyToUse}=true", atMost)
		content := r.kubectl(t, "get", "volumesnapshot", d.name, in, "-o", "jsonpath={.status.boundVolumeSnapshotContentName}")
		ids[d.key()] = r.kubectl(t, "get", "volumesnapshotcontent", content, "-o", "jsonpath={.status.snapshotHandle}")
	}
	return ids
}

// takeBackups runs the commands of the page for each backup, in the other cloud: copy the record, make a volume, restore into it.
func (r *recovery) takeBackups(t *testing.T, from *cluster, ids map[string]string) {
	t.Helper()
	page := (&pages{cluster: r.cluster}).read(t, "how-to/recover-a-cluster.md")
	_, section, found := strings.Cut(page, "\n### In another cloud\n")
	commands := readme.Fenced(section, "sh")
	if !found || len(commands) < 3 {
		t.Fatal("the page has no commands for another cloud")
	}
	clouds := filepath.Join(t.TempDir(), "clouds.yaml")
	writeClouds(t, clouds, map[string]*cluster{"old": from, "new": r.cluster})
	step := func(i int, d datum) error {
		name := d.namespace + "-" + d.name
		text := strings.NewReplacer("BACKUP", ids[d.key()], "shop-data", name, "--size 10", "--size 1", "az1", d.zone).Replace(commands[i])
		_, _, err := r.try(t.Context(), "", "env", "OS_CLIENT_CONFIG_FILE="+clouds, "bash", "-e", "-o", "pipefail", "-c", text)
		return err
	}
	for i := range commands[:2] {
		for _, d := range r.data {
			testenv.Must(t, step(i, d))
		}
	}
	for _, d := range r.data {
		r.awaitStatus(t, d.namespace+"-"+d.name, "available")
		// The client of Debian 12 fails after Cinder has begun, as the page says.
		if err := step(2, d); err != nil && !strings.Contains(err.Error(), "cannot unpack non-iterable VolumeBackupsRestore object") {
			t.Fatal(err)
		}
	}
	for _, d := range r.data {
		r.awaitStatus(t, d.namespace+"-"+d.name, "available")
	}
}

// writeClouds writes a clouds.yaml with the users that the page names, of both clouds.
func writeClouds(t *testing.T, file string, clouds map[string]*cluster) {
	t.Helper()
	entries := map[string]any{}
	for name, c := range clouds {
		var own struct{ Clouds map[string]any }
		text, err := os.ReadFile(filepath.Join(c.openstack, "clouds.yaml"))
		if err == nil {
			err = yaml.Unmarshal(text, &own)
		}
		if err != nil || own.Clouds["lab-demo"] == nil {
			t.Fatalf("the clouds of %s: %v", c.openstack, err)
		}
		entries[name], entries[name+"-admin"] = own.Clouds["lab-demo"], own.Clouds["lab-demo-admin"]
	}
	text, err := json.Marshal(map[string]any{"clouds": entries})
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
