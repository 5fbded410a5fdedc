//go:build cluster

package cluster

import (
	"fmt"
	"slices"
	"testing"
)

// upstreamLacks has a reason for each scenario that is not tried with upstream's plugin.
var upstreamLacks = map[string]string{
	"a VolumeAttributesClass changes the type and metadata of a volume": "no ControllerModifyVolume",
	"the scheduler respects the capacity of a class":                    "no GetCapacity",
	"node with the start-up taint: its pod waits for the driver":        "no such taint",
	"drained node: the driver stays until the volume is detached":       "no such hook",
	"rollout with wrong credentials stops, volumes still work":          "no readiness probe",
	"credentials are replaced under load":                               "reads them at its start only",
}

// endToEndClasses are for upstream's plugin what the bundle of TestEndToEnd brings. force-create lets it save a volume that is in use.
const endToEndClasses = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: standard, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
provisioner: ` + driverName + `
parameters: {type: standard}
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: multiattach}
provisioner: ` + driverName + `
parameters: {type: multiattach}
allowVolumeExpansion: true
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: cinder-csi}
driver: ` + driverName + `
deletionPolicy: Delete
parameters: {force-create: "true"}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: cinder-csi-backup}
driver: ` + driverName + `
deletionPolicy: Delete
parameters: {type: backup, force-create: "true"}
`

// TestEndToEndUpstream tries the scenarios of TestEndToEnd with upstream's plugin, for the comparison: `make test-cluster CASE=upstream`. A scenario that
// fails is a result, which the page shows. The controller has two replicas, as that of the bundle.
func TestEndToEndUpstream(t *testing.T) {
	c := running(t)
	if c.installed(t) {
		t.Fatal("the bundle is installed; `make cluster-down openstack-down cluster-up` removes it")
	}
	u := c.upstream(t, 1)
	c.driver = upstreamWorkloads
	u.install(t)
	c.apply(t, endToEndClasses)
	c.kubectl(t, "scale", "deployment/"+c.driver.deployment[0], "--namespace="+c.driver.deployment[1], "--replicas=2")
	c.rollout(t, c.driver)
	for _, s := range slices.Concat(storageScenarios, lifecycleScenarios, disruptionScenarios) {
		if reason, lacks := upstreamLacks[s.name]; lacks {
			fmt.Printf("measured: upstream  %-62s not offered: %s\n", s.name, reason)
			continue
		}
		if !t.Run(s.name, func(t *testing.T) { c.attempt(t, s, "upstream") }) {
			fmt.Printf("measured: upstream  %-62s failed\n", s.name)
		}
	}
	c.removeAnyDriver(t)
	u.uninstall(t)
	c.kubectl(t, "delete", "storageclasses/standard", "storageclasses/multiattach", "volumesnapshotclasses/cinder-csi", "volumesnapshotclasses/cinder-csi-backup")
}
