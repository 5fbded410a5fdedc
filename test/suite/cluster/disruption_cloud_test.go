//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/process"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var cloudDisruptions = []scenario{
	{"the cloud is unreachable for two minutes", loseCloud},
	{"services of the cloud restart under load", restartServices},
}

const outage = 2 * time.Minute

// loseCloud drops every packet from the nodes to the cloud. What was asked for meanwhile waits, and then succeeds by itself.
func loseCloud(t *testing.T, c *cluster) {
	const node = "node-az1"
	before := c.takeStock(t)
	w := writers{name: "writing", replicas: 2}
	c.startWriters(t, w, node)
	c.start(t, []claim{{name: "leaving", gib: 1}}, pod{name: "leaving", claim: "leaving"})
	drivers := c.allDriverPods(t)
	restore := c.cutCloud(t)
	cut := time.Now()
	late := c.askDuringOutage(t, "data-"+w.pods()[0])
	holds(t, outage, "the cloud out of reach", func() error {
		for _, claim := range late {
			if phase := c.kubectl(t, "get", "pvc", claim, "--namespace="+c.namespace, "-o", "jsonpath={.status.phase}"); phase != "Pending" {
				return fmt.Errorf("claim %s is %s", claim, phase)
			}
		}
		return nil
	})
	restore()
	restored := time.Now()
	var all []string
	for _, claim := range late {
		all = append(all, "pod/"+claim)
	}
	c.kubectl(t, append([]string{"wait", "--namespace=" + c.namespace, "--for=condition=Ready", atMost}, all...)...)
	running := time.Since(restored)
	c.kubectl(t, "wait", "volumesnapshot/late", "--namespace="+c.namespace, "--for=jsonpath={.status.readyToUse}=true", atMost)
	snapshot := time.Since(restored)
	c.kubectl(t, "wait", "pvc/leaving", "--namespace="+c.namespace, "--for=delete", atMost)
	eventually(t, patience, "the volume of the deleted claim is gone", func() error {
		if volumes := c.volumes(t); len(volumes) != w.replicas+len(late) {
			return fmt.Errorf("there are %d volumes, want %d", len(volumes), w.replicas+len(late))
		}
		return nil
	})
	deleted := time.Since(restored)
	for _, pod := range w.pods() {
		log := c.writesOn(t, pod)
		expectWriters(t, log, c.uid(t, pod))
		if pause := log.LongestPause(cut); pause > 5*time.Second {
			t.Errorf("pod %s wrote nothing for %s", pod, pause)
		}
	}
	c.expectNoRestart(t, drivers)
	fmt.Printf("measured: cloud unreachable for %.0f s. After it %d pods with new claims ready in %.1f s, a snapshot in %.1f s, a volume detached and deleted in %.1f s\n",
		restored.Sub(cut).Seconds(), len(late), running.Seconds(), snapshot.Seconds(), deleted.Seconds())
	c.deleteAll(t)
	c.expectStock(t, before)
}

// askDuringOutage asks for claims with pods, a snapshot, and the end of a claim. It gives the names of the claims, which are those of their pods.
func (c *cluster) askDuringOutage(t *testing.T, source string) []string {
	t.Helper()
	var late []string
	manifest := snapshotManifest("late", source, c.snapshotClass(t), c.namespace)
	for i := range 3 {
		name := fmt.Sprintf("late-%d", i)
		late = append(late, name)
		manifest += claim{name: name, gib: 1}.manifest(c.namespace) + pod{name: name, claim: name}.manifest(c.namespace)
	}
	c.apply(t, manifest)
	c.kubectl(t, "delete", "pod/leaving", "pvc/leaving", "--namespace="+c.namespace, "--wait=false")
	return late
}

// openstackBed is what the OpenStack bed says about itself.
type openstackBed struct {
	Address  string
	MaxDisks int `json:"max_disks"` // that Nova lets a server have, with its root disk; -1: any number
}

func (c *cluster) openstackBed(t *testing.T) openstackBed {
	t.Helper()
	var bed openstackBed
	text, err := os.ReadFile(filepath.Join(c.openstack, "bed.json"))
	if err == nil {
		err = json.Unmarshal(text, &bed)
	}
	if err != nil || bed.Address == "" || bed.MaxDisks == 0 {
		t.Fatalf("bed.json of the OpenStack bed has no address or no max_disks: %v", err)
	}
	return bed
}

// cutCloud drops the packets from every node and its pods to the cloud, until restore is called or the test ends.
func (c *cluster) cutCloud(t *testing.T) (restore func()) {
	t.Helper()
	bed := c.openstackBed(t)
	restore = func() { c.joinCloud(t) }
	t.Cleanup(restore)
	for _, node := range nodes {
		c.onNode(t, node, "ip", "route", "add", "blackhole", bed.Address)
	}
	return restore
}

// joinCloud ends what cutCloud began.
func (c *cluster) joinCloud(t *testing.T) {
	address := c.openstackBed(t).Address
	for _, node := range nodes {
		_, _ = c.tryOnNode(node, "ip", "route", "del", "blackhole", address)
	}
}

// restartServices stops one service of the cloud after the other. What is asked for while a service is away succeeds once it is back.
//
// What the cloud works on when its service gets the signal is another matter. Cinder forgets a snapshot then, and leaves it in creating for ever.
// So the service stops between two steps of each worker. Without Nova's API nothing grows, since Cinder tells Nova only once of a larger volume.
func restartServices(t *testing.T, c *cluster) {
	before := c.takeStock(t)
	drivers := c.allDriverPods(t)
	const workers = 4
	l := c.startLoad(t, workers)
	l.awaitCycles(t, 1)
	t.Cleanup(func() {
		if _, err := c.startServices(context.Background()); err != nil {
			t.Error(err)
		}
	})
	var away []string
	for _, service := range []string{"cinder-volume", "nova-compute-az1", "cinder-api", "nova-api"} {
		resume := l.pause(t)
		l.grows.Store(service != "nova-api")
		began, steps := time.Now(), l.begun.Load()
		c.stopService(t, service)
		resume()
		eventually(t, patience, "each worker has begun a step", func() error {
			if n := l.begun.Load() - steps; n < workers {
				return fmt.Errorf("%d of %d; under way: %s", n, workers, l.doing())
			}
			return nil
		})
		t.Logf("%s is away; asked for: %s", service, l.doing())
		if out, err := c.startServices(t.Context()); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		l.grows.Store(true)
		away = append(away, fmt.Sprintf("%s %.1f s", service, time.Since(began).Seconds()))
		l.awaitCycles(t, 2)
	}
	l.finish(t)
	c.expectSameInCinder(t, before)
	c.expectNoRestart(t, drivers)
	fmt.Printf("measured: services restarted under %d cycles of create, attach, snapshot, expand, delete; away: %s\n", l.cycles.Load(), strings.Join(away, ", "))
	c.deleteAll(t)
	c.expectStock(t, before)
}

// stopService asks a service of the bed to end, and waits for its end.
func (c *cluster) stopService(t *testing.T, name string) {
	t.Helper()
	testenv.Must(t, process.Terminate(filepath.Join(c.openstack, "run", name+".pid"), patience))
}

// startServices starts what of the bed does not run.
func (c *cluster) startServices(ctx context.Context) (string, error) {
	out, _, err := c.try(ctx, "", "env", "BED_NODES_PER_AZ=2", "OPENSTACK_BED="+c.openstack, filepath.Join(c.repo, "test", "bed", "openstack", "up.sh"))
	return out, err
}
