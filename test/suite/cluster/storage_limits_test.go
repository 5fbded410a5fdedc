//go:build cluster

package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// novaLimit is how many volumes a server of the bed can have beside its root disk. 0: Nova has no limit of its own.
func (c *cluster) novaLimit(t *testing.T) int {
	t.Helper()
	if disks := c.openstackBed(t).MaxDisks; disks > 0 {
		return disks - 1
	}
	return 0
}

// attachLimit fills the only node of a zone but for one volume. Of two pods with a volume each, the second has to wait. On a bed whose Nova has a
// limit of its own, the node reports that one, and Nova takes as many.
func attachLimit(t *testing.T, c *cluster) {
	const node = "node-az2"
	text := c.kubectl(t, "get", "csinode", node, "-o", fmt.Sprintf(`jsonpath={.spec.drivers[?(@.name==%q)].allocatable.count}`, driverName))
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 3 || limit > 30 {
		t.Fatalf("node %s reports an attach limit of %q; this scenario needs 3 to 30", node, text)
	}
	if want := c.novaLimit(t); want > 0 && limit != want {
		t.Fatalf("node %s reports an attach limit of %d, and Nova takes %d volumes", node, limit, want)
	}
	var claims []claim
	for i := range limit + 1 {
		claims = append(claims, claim{name: fmt.Sprintf("c%d", i), gib: 1})
	}
	full := pod{name: "full", claim: "c0", node: node}
	for _, claim := range claims[1 : limit-1] {
		full.more = append(full.more, claim.name)
	}
	began := time.Now()
	c.start(t, claims, full)
	c.measured(fmt.Sprintf("- one pod with %d volumes ready (the limit is %d)", limit-1, limit), began)
	c.start(t, nil, pod{name: "last", claim: claims[limit-1].name, node: node})
	extra := pod{name: "extra", claim: claims[limit].name, node: node}
	c.create(t, nil, extra)
	c.unschedulable(t, "extra", "exceed max volume count")
	c.deletePod(t, "last")
	began = time.Now()
	c.start(t, nil, extra)
	c.measured("- one volume gone until the waiting pod is ready", began)
	c.write(t, "extra", "/data/file", "extra")
}

// published is a CSIStorageCapacity.
type published struct {
	StorageClassName string
	Capacity         resource.Quantity
	NodeTopology     struct{ MatchLabels map[string]string }
}

// capacities are what the provisioner has published, by class and zone.
func (c *cluster) capacities(t *testing.T) map[string]resource.Quantity {
	t.Helper()
	var list struct{ Items []published }
	testenv.Must(t, json.Unmarshal([]byte(c.kubectl(t, "get", "csistoragecapacities", "--namespace="+namespaces["controller"], "-o", "json")), &list))
	all := map[string]resource.Quantity{}
	for _, p := range list.Items {
		all[p.StorageClassName+" "+p.NodeTopology.MatchLabels[zoneLabel]] = p.Capacity
	}
	return all
}

// ownClass is a class that comes and goes with its capacity.
const ownClass = `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: e2e-own-class}
provisioner: ` + driverName + `
parameters: {type: fast}
volumeBindingMode: WaitForFirstConsumer
`

// quotaAge is longer than the driver uses the quotas that it has read (driver/provision).
const quotaAge = 12 * time.Second

// capacity asks for more than the quota of the type fast, which is 1000 GiB in the OpenStack bed.
func capacity(t *testing.T, c *cluster) {
	t.Cleanup(func() {
		if _, _, err := c.try(context.Background(), "", "kubectl", "delete", "storageclass", "e2e-own-class", "--ignore-not-found"); err != nil {
			t.Error(err)
		}
	})
	// The capacity of a class is published when the class is new, and then once a minute. So this class has what is free now, without the volumes of
	// earlier scenarios, and the class fast has the same a little later.
	time.Sleep(quotaAge)
	c.apply(t, ownClass)
	classes := strings.Fields(c.kubectl(t, "get", "storageclasses", "-o", fmt.Sprintf(`jsonpath={.items[?(@.provisioner==%q)].metadata.name}`, driverName)))
	var all map[string]resource.Quantity
	eventually(t, patience, "the capacity of each class in each zone", func() error {
		all = c.capacities(t)
		for _, class := range classes {
			for _, zone := range zones {
				if _, has := all[class+" "+zone]; !has {
					return fmt.Errorf("class %s in %s has none; there are %v", class, zone, all)
				}
			}
		}
		for _, zone := range zones {
			if free, old := all["e2e-own-class "+zone], all["fast "+zone]; free.Cmp(old) != 0 {
				return fmt.Errorf("class fast in %s has %s, and %s is free", zone, &old, &free)
			}
		}
		return nil
	})
	free := all["fast az1"]
	gib := int(free.Value() >> 30)
	if gib < 10 || gib > 1000 {
		t.Fatalf("the class fast has %d GiB, of a quota of 1000", gib)
	}
	c.create(t, []claim{{name: "large", gib: gib + 1, class: "fast"}}, pod{name: "large", claim: "large"})
	c.unschedulable(t, "large", "did not have enough free storage")
	c.start(t, []claim{{name: "normal", gib: 5, class: "fast"}}, pod{name: "normal", claim: "normal"})
	c.write(t, "normal", "/data/file", "normal")
	if phase := c.phaseOf(t, "large"); phase != "Pending" {
		t.Errorf("the pod with the large claim is %s", phase)
	}
	eventually(t, patience, "the published capacity follows the quota", func() error {
		now := c.capacities(t)["fast az2"]
		if left := int(now.Value() >> 30); left > gib-5 {
			return fmt.Errorf("%d GiB, and %d GiB before 5 GiB were taken", left, gib)
		}
		return nil
	})
	c.kubectl(t, "delete", "storageclass", "e2e-own-class")
	eventually(t, patience, "the capacity of a deleted class deleted", func() error {
		for of := range c.capacities(t) {
			if strings.HasPrefix(of, "e2e-own-class ") {
				return fmt.Errorf("there is one of %s", of)
			}
		}
		return nil
	})
}

// contains reports whether a list has an item; an empty item is never in it.
func contains(list []string, item string) bool { return item != "" && slices.Contains(list, item) }

// measured prints how long a part of a scenario took. The line has no "e2e", which begins the name of a scenario (test/judge).
func (c *cluster) measured(what string, since time.Time) {
	fmt.Printf("measured: %-72s %6.1f s\n", strings.TrimPrefix(what, "- "), time.Since(since).Seconds())
}
