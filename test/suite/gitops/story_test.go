//go:build gitops

package gitops

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// tool is Argo CD or Flux.
type tool interface {
	apply(t *testing.T)   // the example
	refresh(t *testing.T) // now, in place of after the interval of the example
	ready() error         // what Git has is applied, and healthy
	appliesTheRest() bool // although a kind is missing
	prunes() bool         // the example deletes what a bundle no longer has
	remove(t *testing.T)  // what the example made, with everything that it applied
}

const (
	first   = "images: {driver: {repository: registry.example/cinder-csi, tag: v1}}"
	later   = "images: {driver: {repository: registry.example/cinder-csi, tag: v2}}, driver: {logLevel: 4}"
	without = later + ", storageClasses: {exclude: [fast]}, snapshots: {enabled: false}"
)

// kept are the objects that existing volumes need, whatever a bundle has now.
var kept = []string{"storageclass/standard", "storageclass/fast", "volumesnapshotclass/cinder-csi", "csidriver/cinder.csi.openstack.org", "namespace/cinder-csi", "namespace/cinder-csi-node"}

const deployment, daemonSet = "deployment/cinder-csi-controller", "daemonset/cinder-csi-node"

// tell is the life of a bundle that a tool applies.
func tell(t *testing.T, s *server, with tool) {
	s.commit(t, "prod/cinder-csi", first)
	with.apply(t)
	synced := func(what string) {
		t.Helper()
		s.eventually(t, 3*time.Minute, what, with.ready)
	}

	t.Log("the first sync, before another application has installed the CRDs of snapshots")
	s.eventually(t, 2*time.Minute, "the tool says that the kind VolumeSnapshotClass is missing", func() error {
		if err := with.ready(); err == nil || !strings.Contains(err.Error(), "VolumeSnapshotClass") {
			return fmt.Errorf("it says %v", err)
		}
		return nil
	})
	if with.appliesTheRest() {
		s.eventually(t, time.Minute, "everything else is applied", func() error {
			return errors.Join(s.quiet("kubectl", "get", "-n", "cinder-csi-node", daemonSet), s.quiet("kubectl", "get", kept[0]))
		})
	} else if s.quiet("kubectl", "get", "-n", "cinder-csi-node", daemonSet) == nil {
		t.Error("Flux applies a part of a bundle; examples/gitops/README.md says that it applies nothing")
	}
	s.crds(t)
	with.refresh(t)
	synced("everything is applied once the CRDs are there")
	s.there(t, kept...)

	t.Log("drift")
	s.run(t, "kubectl", "scale", "-n", "cinder-csi", deployment, "--replicas=0")
	s.run(t, "kubectl", "delete", "configmap", "-n", "cinder-csi-node", "cinder-csi-node-config")
	s.run(t, "kubectl", "delete", "storageclass", "fast")
	with.refresh(t)
	s.eventually(t, 2*time.Minute, "replicas, ConfigMap and class are as Git has them", func() error {
		if got, want := s.get("-n", "cinder-csi", deployment, "{.spec.replicas}"), "2"; got != want {
			return fmt.Errorf("%s replicas", got)
		}
		if err := s.quiet("kubectl", "get", "storageclass", "fast"); err != nil {
			return err
		}
		return s.quiet("kubectl", "get", "configmap", "-n", "cinder-csi-node", "cinder-csi-node-config")
	})

	t.Log("an upgrade")
	s.commit(t, "prod/cinder-csi", later)
	with.refresh(t)
	s.eventually(t, 2*time.Minute, "both roles have the new image", func() error {
		for _, of := range [][]string{{"-n", "cinder-csi", deployment}, {"-n", "cinder-csi-node", daemonSet}} {
			if got := s.get(append(of, "{.spec.template.spec.containers[0].image}")...); !strings.HasSuffix(got, "/registry.example/cinder-csi:v2") && got != "registry.example/cinder-csi:v2" {
				return fmt.Errorf("%s has %s", of[2], got)
			}
		}
		return nil
	})
	synced("the upgrade is healthy")

	t.Log("a bundle without a class and without snapshots")
	const pruned = "clusterrole/cinder-csi-snapshotter"
	s.there(t, pruned)
	s.commit(t, "prod/cinder-csi", without)
	with.refresh(t)
	s.eventually(t, 2*time.Minute, "the controller has no snapshotter", func() error {
		if got := s.get("-n", "cinder-csi", deployment, "{.spec.template.spec.containers[*].name}"); got == "" || strings.Contains(got, "snapshotter") {
			return fmt.Errorf("containers %q", got)
		}
		return nil
	})
	if with.prunes() {
		s.eventually(t, time.Minute, "the right that nothing needs is deleted", func() error {
			if s.quiet("kubectl", "get", pruned) == nil {
				return fmt.Errorf("%s is there", pruned)
			}
			return nil
		})
	}
	synced("it is healthy, although objects are kept")
	s.there(t, kept...)

	t.Log("the removal of the application, with what it applied")
	with.remove(t)
	s.eventually(t, 2*time.Minute, "the workloads are gone", func() error {
		for _, of := range [][]string{{"-n", "cinder-csi", deployment}, {"-n", "cinder-csi-node", daemonSet}} {
			if s.quiet(append([]string{"kubectl", "get"}, of...)...) == nil {
				return fmt.Errorf("%s is there", of[2])
			}
		}
		return nil
	})
	s.there(t, kept...)
}

// there fails for each object that is missing, or is being deleted.
func (s *server) there(t *testing.T, objects ...string) {
	t.Helper()
	for _, o := range objects {
		out, messages, err := s.Try("kubectl", "get", o, "-o", "jsonpath={.metadata.deletionTimestamp}")
		if err != nil || out != "" {
			t.Errorf("%s: want it there and not being deleted, got %v%s, deletion at %q", o, err, messages, out)
		}
	}
}

// get is one field of an object, empty where there is none.
func (s *server) get(args ...string) string {
	last := len(args) - 1
	out, _, _ := s.Try(append(append([]string{"kubectl", "get"}, args[:last]...), "-o", "jsonpath="+args[last])...)
	return out
}
