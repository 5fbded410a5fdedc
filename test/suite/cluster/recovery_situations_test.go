//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// situation is something that people on call meet. The other rehearsals and the alerts have those that need a disaster.
type situation struct {
	name   string
	begin  func(t *testing.T, shop *cluster) // makes it, with a claim of the same name unless object says otherwise
	end    func(t *testing.T, shop *cluster) // puts it right, if the next one cannot begin otherwise
	object string                            // of kubectl cinder volume; empty: shop/ and the name
	cause  string
}

// full is more than the quota of the project, and less than what Kubernetes takes for a typing error.
const full = 100_000

var situations = []situation{
	{name: "class-missing", cause: "class.missing", begin: func(t *testing.T, c *cluster) {
		c.create(t, []claim{{name: "class-missing", gib: 1, class: "no-such-class"}})
	}},
	{name: "no-pod", cause: "pod.none", begin: func(t *testing.T, c *cluster) { c.create(t, []claim{{name: "no-pod", gib: 1}}) }},
	{name: "quota", cause: "create.quota", begin: func(t *testing.T, c *cluster) {
		c.create(t, []claim{{name: "quota", gib: full}}, pod{name: "quota", claim: "quota"})
	}},
	{name: "wrong-zone", cause: "pod.zone", begin: func(t *testing.T, c *cluster) {
		c.start(t, []claim{{name: "wrong-zone", gib: 1}}, pod{name: "wrong-zone", claim: "wrong-zone", zone: "az2"})
		c.deletePod(t, "wrong-zone")
		c.create(t, nil, pod{name: "wrong-zone", claim: "wrong-zone", node: "node-az1"})
	}},
	{name: "multi-attach", cause: "attach.elsewhere", begin: func(t *testing.T, c *cluster) {
		c.start(t, []claim{{name: "multi-attach", gib: 1}}, pod{name: "first", claim: "multi-attach", node: "node-az1"})
		c.create(t, nil, pod{name: "second", claim: "multi-attach", node: "node-az1-2"})
	}, object: "pod/second"},
	{name: "node-full", cause: "pod.attach-limit", begin: func(t *testing.T, c *cluster) {
		claims := []claim{{name: "full-0", gib: 1}, {name: "full-1", gib: 1}, {name: "full-2", gib: 1}, {name: "node-full", gib: 1}}
		c.start(t, claims[:3], pod{name: "full", claim: "full-0", more: []string{"full-1", "full-2"}, node: "node-az2"})
		c.create(t, claims[3:], pod{name: "node-full", claim: "node-full", node: "node-az2"})
	}},
	{name: "snapshot", cause: "source.not-ready", begin: func(t *testing.T, c *cluster) {
		c.apply(t, snapshotManifest("never", "no-such-claim", c.snapshotClass(t), c.namespace))
		c.create(t, []claim{{name: "snapshot", gib: 1, from: "never"}}, pod{name: "snapshot", claim: "snapshot"})
	}},
	{name: "volume-error", cause: "volume.error", begin: func(t *testing.T, c *cluster) {
		c.start(t, []claim{{name: "volume-error", gib: 1}}, pod{name: "volume-error", claim: "volume-error", node: "node-az1"})
		c.deletePod(t, "volume-error")
		id := c.volumeOf(t, "volume-error")
		eventually(t, patience, "volume "+id+" available", func() error {
			if status := c.cinder(t, id, "status"); status != "available" {
				return fmt.Errorf("it is %s", status)
			}
			return nil
		})
		c.run(t, "/usr/bin/openstack", "--os-cloud", "lab-demo-admin", "volume", "set", "--state", "error", id)
		c.create(t, nil, pod{name: "volume-error", claim: "volume-error", node: "node-az1-2"})
	}},
	{name: "unhealthy", cause: "mount.read-only", begin: func(t *testing.T, c *cluster) { breakFileSystem(t, c) }, end: func(t *testing.T, c *cluster) { c.deletePod(t, "unhealthy") }},
	{name: "cloud-down", cause: "cloud.unreachable", begin: func(t *testing.T, c *cluster) {
		c.cutCloud(t)
		c.create(t, []claim{{name: "cloud-down", gib: 1}}, pod{name: "cloud-down", claim: "cloud-down", node: "node-az1"})
	}, end: func(t *testing.T, c *cluster) {
		c.joinCloud(t)
		c.kubectl(t, "wait", "pod/cloud-down", "--namespace="+c.namespace, "--for=condition=Ready", atMost)
	}},
	// The pod is that of the volume that another pod waits for.
	{name: "node-lost", object: "pod/first", cause: "node.not-ready", begin: func(t *testing.T, c *cluster) {
		t.Cleanup(func() { _ = c.power(context.Background(), "on", "node-az1") })
		if err := c.power(t.Context(), "off", "node-az1"); err != nil {
			t.Fatal(err)
		}
	}, end: func(t *testing.T, c *cluster) {
		if err := c.power(t.Context(), "on", "node-az1"); err != nil {
			t.Fatal(err)
		}
		c.kubectl(t, "wait", "node/node-az1", "--for=condition=Ready", atMost)
	}},
}

// answerSituations makes each situation and measures how long one run of `kubectl cinder volume` takes, and when it first names the cause.
func answerSituations(t *testing.T, c *cluster) {
	r := &recovery{cluster: c, began: time.Now()}
	r.installAs(t, strings.Replace(recoveryDistribution("first", false), "  images:", "  volumeAttachLimit: 3\n  images:", 1))
	shop := r.in("shop")
	shop.makeNamespace(t)
	r.step(t, "bundle installed")
	for _, s := range situations {
		s.begin(t, shop)
		began := time.Now()
		object := s.object
		if object == "" {
			object = s.name
		}
		var took, answered time.Duration
		err := await(t.Context(), 2*time.Minute, func() error {
			asked := time.Now()
			out, _, _ := r.try(context.Background(), "", "kubectl", "cinder", "volume", object, "--namespace=shop", "--os-cloud", "lab-demo")
			took = time.Since(asked)
			if !strings.Contains(out, "Cause: "+s.cause+" ") {
				return fmt.Errorf("kubectl cinder volume %s does not name %s:\n%s", object, s.cause, out)
			}
			answered = time.Since(began)
			return nil
		})
		if s.end != nil {
			s.end(t, shop)
		}
		if err != nil {
			t.Error(err)
			continue
		}
		fmt.Printf("measured: situation | %s | %s | answer in %.1f s, %.1f s after it began |\n", s.name, s.cause, took.Seconds(), answered.Seconds())
	}
	r.began = time.Now()
	r.kubectl(t, "delete", "pods", "--all", "--namespace=shop", atMost)
	r.deleteTeam(t, "shop")
	r.remove(t)
	r.step(t, "everything deleted")
}
