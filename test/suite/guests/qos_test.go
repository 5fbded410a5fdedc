//go:build openstack

package guests

import (
	"crypto/rand"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A volume type can have limits that the hypervisor keeps (QoS specs of consumer front-end). Cinder changes none for a disk in use. After a change
// offline, the next attach has the new limits.
func TestTheHypervisorLimitsADiskByTheQoSOfItsType(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.serverNamed(t, "node-az1"))
	slow := r.typeWithQoS(t, map[string]string{"total_iops_sec": "30"})
	c := r.create(t, n, claim{fsType: "ext4"}, 1, ofType(slow))
	n.use(t, c)
	if got := n.limits(t, c); !strings.Contains(got, "<total_iops_sec>30<") {
		t.Errorf("want a limit of 30 operations a second, got %q", got)
	}
	sum := n.write(t, c, "kept")
	limited := n.reads(t, c)
	t.Logf("%-40s %6.1f s", "200 reads of 4 KiB with the limit", limited.Seconds())
	if limited < 5*time.Second { // 30 a second need 6.7 s, less what the hypervisor lets pass at once
		t.Errorf("want the hypervisor to keep the limit, got 200 reads in %s", limited)
	}

	if err := r.retype(t, c, "standard"); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "front-end qos") {
		t.Errorf("in use: want FailedPrecondition because of the QoS, got %v", err)
	}
	if v, err := r.volume(t, c.id); err != nil || v.Type != slow || v.Status != "in-use" {
		t.Errorf("want the volume in-use, of type %s; got %+v %v", slow, v, err)
	}
	n.leave(t, c)
	timed(t, "to standard", func() error { return r.retype(t, c, "standard") })
	n.use(t, c)
	if got := n.limits(t, c); strings.Contains(got, "total_iops_sec") {
		t.Errorf("want no limit, got %q", got)
	}
	t.Logf("%-40s %6.1f s", "200 reads of 4 KiB without it", n.reads(t, c).Seconds())
	n.wantData(t, c, "kept", sum)
	n.leave(t, c)
}

// limits is what libvirt limits for the disk of a volume.
func (n *node) limits(t *testing.T, c claim) string {
	t.Helper()
	limits, found := "", false
	for _, disk := range strings.Split(n.virsh(t, "dumpxml"), "<disk ")[1:] {
		if !strings.Contains(disk, "<serial>"+c.id+"<") {
			continue
		}
		found = true
		if _, tuned, ok := strings.Cut(disk, "<iotune>"); ok {
			limits, _, _ = strings.Cut(tuned, "</iotune>")
		}
	}
	if !found {
		t.Fatalf("libvirt shows no disk of volume %s", c.id)
	}
	return limits
}

// reads is how long the guest needs for 200 reads around its cache.
func (n *node) reads(t *testing.T, c claim) time.Duration {
	t.Helper()
	began := time.Now()
	n.sh(t, "dd if=/dev/"+n.device(c)+" of=/dev/null bs=4k count=200 iflag=direct 2>/dev/null")
	return time.Since(began)
}

// typeWithQoS makes a volume type with limits until the test ends.
func (r *region) typeWithQoS(t *testing.T, limits map[string]string) string {
	t.Helper()
	name := "qos-" + rand.Text()[:8]
	specs := map[string]string{"name": name, "consumer": "front-end"}
	for key, value := range limits {
		specs[key] = value
	}
	var qos struct {
		Specs struct{ ID string } `json:"qos_specs"`
	}
	send(t, r.adminDisk, http.MethodPost, "qos-specs", map[string]any{"qos_specs": specs}, &qos)
	t.Cleanup(func() { send(t, r.adminDisk, http.MethodDelete, "qos-specs/"+qos.Specs.ID, nil, nil) })
	var made struct {
		Type struct{ ID string } `json:"volume_type"`
	}
	send(t, r.adminDisk, http.MethodPost, "types", map[string]any{"volume_type": map[string]any{
		"name": name, "extra_specs": map[string]string{"volume_backend_name": "standard"},
	}}, &made)
	t.Cleanup(func() {
		// A type is in use until the last volume that had it is gone from the database.
		eventually(t, "the type is deleted", func() error { return ask(t, r.adminDisk, http.MethodDelete, "types/"+made.Type.ID, nil, nil) })
	})
	send(t, r.adminDisk, http.MethodGet, "qos-specs/"+qos.Specs.ID+"/associate?vol_type_id="+made.Type.ID, nil, nil)
	return name
}
