//go:build cluster

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// situation is something that people on call meet. The other rehearsals and the alerts have those that need a disaster.
type situation struct {
	name    string
	begin   func(t *testing.T, shop *cluster) (end func() error) // makes it, with a claim of the same name unless object says otherwise
	object  string                                               // of kubectl cinder volume; empty: the name
	cause   string                                               // that kubectl cinder volume names
	command []string                                             // another command than kubectl cinder volume
	says    []string                                             // what the answer must have, too
}

// question is the command that answers the situation, and what its answer must have.
func (s situation) question() (command, want []string) {
	if s.command != nil {
		return s.command, s.says
	}
	command = []string{"kubectl", "cinder", "volume", cmp.Or(s.object, s.name), "--namespace=shop", "--os-cloud", "lab-demo"}
	return command, append([]string{"Cause: " + s.cause + " "}, s.says...)
}

// situations begin with those of a claim or a pod. Those of the driver, of the cloud and of a node come last, because they concern everybody.
var situations = [][]situation{workloadSituations, driverSituations, cloudSituations, nodeSituations}

// full is more than the quota of the project, and less than what Kubernetes takes for a typing error.
const full = 100_000

var workloadSituations = []situation{
	{name: "class-missing", cause: "class.missing", begin: func(t *testing.T, c *cluster) func() error {
		c.create(t, []claim{{name: "class-missing", gib: 1, class: "no-such-class"}})
		return nil
	}},
	{name: "no-pod", cause: "pod.none", begin: func(t *testing.T, c *cluster) func() error {
		c.create(t, []claim{{name: "no-pod", gib: 1}})
		return nil
	}},
	{name: "quota", cause: "quota.gigabytes", begin: func(t *testing.T, c *cluster) func() error {
		c.create(t, []claim{{name: "quota", gib: full}}, pod{name: "quota", claim: "quota"})
		return func() error { return c.deletedPod("quota") } // the scheduler counts it on the node that it has in mind
	}},
	{name: "crash", cause: "none", begin: crashingPod},
	{name: "mount-fails", cause: "fs.unknown-content", says: []string{"--namespace cinder-csi-node logs"}, begin: wrongFileSystem},
	{name: "wrong-zone", cause: "pod.zone", begin: func(t *testing.T, c *cluster) func() error {
		c.start(t, []claim{{name: "wrong-zone", gib: 1}}, pod{name: "wrong-zone", claim: "wrong-zone", zone: "az2"})
		c.deletePod(t, "wrong-zone")
		c.create(t, nil, pod{name: "wrong-zone", claim: "wrong-zone", node: "node-az1"})
		return nil
	}},
	{name: "multi-attach", object: "pod/second", cause: "attach.elsewhere", begin: func(t *testing.T, c *cluster) func() error {
		c.start(t, []claim{{name: "multi-attach", gib: 1}}, pod{name: "first", claim: "multi-attach", node: "node-az1"})
		c.create(t, nil, pod{name: "second", claim: "multi-attach", node: "node-az1-2"})
		return nil
	}},
	{name: "snapshot", cause: "source.not-ready", begin: func(t *testing.T, c *cluster) func() error {
		c.apply(t, snapshotManifest("never", "no-such-claim", c.snapshotClass(t), c.namespace))
		c.create(t, []claim{{name: "snapshot", gib: 1, from: "never"}}, pod{name: "snapshot", claim: "snapshot"})
		return func() error { return c.deletedPod("snapshot") }
	}},
	{name: "volume-error", cause: "volume.error", begin: func(t *testing.T, c *cluster) func() error {
		id := c.unused(t, "volume-error", "node-az1")
		c.run(t, "/usr/bin/openstack", "--os-cloud", "lab-demo-admin", "volume", "set", "--state", "error", id)
		c.create(t, nil, pod{name: "volume-error", claim: "volume-error", node: "node-az1-2"})
		return nil
	}},
	{name: "orphan", command: []string{"kubectl", "cinder", "orphans", "--os-cloud", "lab-demo"}, says: []string{"shop/orphan", "1 objects with the mark"}, begin: orphan},
	{name: "unhealthy", cause: "mount.read-only", begin: breakFileSystem},
}

// situationDistribution has a small limit of volumes, and the CA of the cloud beside the credentials.
var situationDistribution = strings.Replace(recoveryDistribution("first", false), "  images:", "  volumeAttachLimit: 3\n  credentials: {caKey: cacert}\n  images:", 1)

// answerWithin is how long Kubernetes, the driver and the cloud may take until a situation can be seen.
const answerWithin = 4 * time.Minute

// answerSituations makes each situation and measures how long one run of its command takes, and when it first names the cause.
func answerSituations(t *testing.T, c *cluster) {
	c.switchTLS(t, true)
	t.Cleanup(func() { c.switchTLS(t, false) })
	r := &recovery{cluster: c, began: time.Now()}
	r.installAs(t, situationDistribution)
	shop := r.in("shop")
	shop.makeNamespace(t)
	r.step(t, "bundle installed")
	selected := regexp.MustCompile(os.Getenv("SITUATION"))
	for _, group := range situations {
		for _, s := range group {
			if selected.MatchString(s.name) {
				shop.answer(t, s)
			}
		}
	}
	for _, namespace := range namespaces { // a report that is complete has all pods, and one node has just come back
		r.kubectl(t, "wait", "pods", "--all", "--namespace="+namespace, "--for=condition=Ready", atMost)
	}
	r.began = time.Now()
	r.reportSafely(t)
	r.kubectl(t, "delete", "pods", "--all", "--namespace=shop", atMost)
	r.deleteTeam(t, "shop")
	r.remove(t)
	r.step(t, "everything deleted")
}

// answer makes a situation, and runs its command until the answer is right.
func (c *cluster) answer(t *testing.T, s situation) {
	t.Helper()
	end := s.begin(t, c)
	began := time.Now()
	command, want := s.question()
	var took, answered time.Duration
	err := await(t.Context(), answerWithin, func() error {
		asked := time.Now()
		out, _, _ := c.try(context.Background(), "", command[0], command[1:]...)
		took = time.Since(asked)
		line := strings.Join(strings.Fields(out), " ") // the program wraps its text
		for _, text := range want {
			if !strings.Contains(line, text) {
				return fmt.Errorf("situation %s: %s does not say %q:\n%s", s.name, strings.Join(command, " "), text, out)
			}
		}
		answered = time.Since(began)
		return nil
	})
	if err != nil {
		t.Error(err)
	} else {
		fmt.Printf("measured: situation | %s | %s | answer in %.1f s, %.1f s after it began |\n", s.name, cmp.Or(s.cause, strings.Join(command[:3], " ")), took.Seconds(), answered.Seconds())
	}
	if end == nil {
		return
	}
	testenv.Check(t, end())
}

// unused makes a claim whose volume no pod uses any more, and gives the ID of the volume.
func (c *cluster) unused(t *testing.T, name, node string) (id string) {
	t.Helper()
	c.start(t, []claim{{name: name, gib: 1}}, pod{name: name, claim: name, node: node})
	c.deletePod(t, name)
	id = c.volumeOf(t, name)
	c.awaitStatus(t, id, "available")
	return id
}

func (c *cluster) awaitStatus(t *testing.T, id, want string) {
	t.Helper()
	eventually(t, patience, "volume "+id+" "+want, func() error {
		if status := c.cinder(t, id, "status"); status != want {
			return fmt.Errorf("it is %s", status)
		}
		return nil
	})
}

// deletedPod ends a situation: the next one may need its place on the node.
func (c *cluster) deletedPod(name string) error {
	_, _, err := c.try(context.Background(), "", "kubectl", "delete", "pod", name, "--namespace="+c.namespace, atMost)
	return err
}

// crashingPod has a container that ends at once. Its volume is mounted, so the storage does not hang.
func crashingPod(t *testing.T, c *cluster) func() error {
	manifest := pod{name: "crash", claim: "crash", node: "node-az1"}.manifest(c.namespace)
	c.create(t, []claim{{name: "crash", gib: 1}})
	c.apply(t, strings.Replace(manifest, "args: [wait]", "args: [crash]", 1))
	eventually(t, patience, "a container that has crashed", func() error {
		if out := c.kubectl(t, "get", "pod", "crash", "--namespace="+c.namespace, "-o", "jsonpath={.status.containerStatuses[*].restartCount}"); out == "" || out == "0" {
			return fmt.Errorf("its restarts are %q", out)
		}
		return nil
	})
	return func() error { return c.deletedPod("crash") }
}

// wrongFileSystem imports a volume under another file system than it has: the driver never formats it.
func wrongFileSystem(t *testing.T, c *cluster) func() error {
	const name = "mount-fails"
	id := c.unused(t, "has-ext4", "node-az1")
	zone := c.cinder(t, id, "availability_zone")
	c.apply(t, fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: mount-fails}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: recovery-xfs
  claimRef: {namespace: %s, name: mount-fails}
  csi: {driver: %s, volumeHandle: %s, fsType: xfs}
  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: %s, operator: In, values: [%s]}]}]}}
`, c.namespace, driverName, id, zoneLabel, zone))
	c.create(t, []claim{{name: name, gib: 1, class: "recovery-xfs"}}, pod{name: name, claim: name, node: "node-az1"})
	return func() error {
		err := c.deletedPod(name)
		for _, object := range []string{"pvc/" + name, "persistentvolume/" + name} {
			if _, _, deleted := c.try(context.Background(), "", "kubectl", "delete", object, "--namespace="+c.namespace, atMost); err == nil {
				err = deleted
			}
		}
		return err
	}
}

// orphan is a volume that was kept when its claim and its PersistentVolume were deleted.
func orphan(t *testing.T, c *cluster) func() error {
	id, volume := c.unused(t, "orphan", "node-az1"), c.volumeName(t, "orphan")
	c.kubectl(t, "patch", "persistentvolume", volume, "--type=merge", "-p", `{"spec": {"persistentVolumeReclaimPolicy": "Retain"}}`)
	c.kubectl(t, "delete", "pvc", "orphan", "--namespace="+c.namespace, atMost)
	c.kubectl(t, "delete", "persistentvolume", volume, atMost)
	return func() error {
		_, _, err := c.try(context.Background(), "", "/usr/bin/openstack", "--os-cloud", "lab-demo", "volume", "delete", id)
		return err
	}
}
