package driver

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

func TestTheLogHasOneLineForEachRPCWithItsObjectsAndRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startWith(t, simulated())
		az1, _ := servers()
		id := must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1"))).GetVolume().GetVolumeId()
		must[*csi.ControllerPublishVolumeResponse](t)(d.ControllerPublishVolume(asSidecar(t), &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: az1, VolumeCapability: writer}))
		_, err := d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id})
		if err == nil {
			t.Error("an attached volume was deleted")
		}
		must[*csi.ControllerUnpublishVolumeResponse](t)(d.ControllerUnpublishVolume(asSidecar(t), &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az1}))
		must[*csi.DeleteVolumeResponse](t)(d.DeleteVolume(asSidecar(t), &csi.DeleteVolumeRequest{VolumeId: id}))
		const request = `requests=\[req-[0-9a-f-]{36}\]`
		for _, line := range []string{
			`method=CreateVolume volume=` + id + ` name=pvc-1 ` + request + ` duration=\S+ code=OK`,
			`method=ControllerPublishVolume volume=` + id + ` server=` + az1 + ` ` + request + ` duration=\S+ code=OK`,
			`method=DeleteVolume volume=` + id + ` duration=\S+ code=FailedPrecondition kind=conflict written=false error=`,
			`method=ControllerUnpublishVolume volume=` + id + ` server=` + az1 + ` ` + request + ` duration=\S+ code=OK`,
			`method=DeleteVolume volume=` + id + ` ` + request + ` duration=\S+ code=OK`,
		} {
			if n := len(regexp.MustCompile(`msg=rpc `+line).FindAllString(d.log.String(), -1)); n != 1 {
				t.Errorf("want one line %s, got %d in\n%s", line, n, d.log)
			}
		}
	})
}

func TestTheProjectsQuotasAreMetricsOnceTheyWereRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim, "--with-capacity")
		must[*csi.CreateVolumeResponse](t)(d.CreateVolume(asSidecar(t), claim("pvc-1")))
		if page, _ := d.get(t, "/metrics"); regexp.MustCompile(`cinder_csi_quota`).Match(page) {
			t.Error("quotas are shown that nobody has read")
		}
		must[*csi.GetCapacityResponse](t)(d.GetCapacity(asSidecar(t), &csi.GetCapacityRequest{}))
		before := sim.RequestCount()
		if limit, used := d.metric(t, `cinder_csi_quota_limit_bytes{resource="volumes",type="fast"}`), d.metric(t, `cinder_csi_quota_used_objects{resource="volumes",type=""}`); limit != 1000<<30 || used != 1 {
			t.Errorf("limit %v, used %v", limit, used)
		}
		if sim.RequestCount() != before {
			t.Error("a scrape asked the cloud")
		}
	})
}

func TestTheLogSaysWhereAnRPCHangsBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := simulated()
		d := startWith(t, sim)
		node, _ := servers()
		id := made(t, d)
		if err := publish(t, d, id, node); err != nil {
			t.Fatal(err)
		}
		sim.SetLatency(openstacksim.Detach, 100*time.Second)
		if err := unpublish(t, d, id, node); err != nil {
			t.Fatal(err)
		}
		line := `msg="rpc in progress" method=ControllerUnpublishVolume volume=` + id + ` server=` + node + ` duration=(15|30|1m0)s step="waiting for volume ` + id +
			` to become detached from server ` + node + `" step_duration=\d+m?\d*s state="volume ` + id + `: its status is detaching" requests=\[req-`
		if n := len(regexp.MustCompile(line).FindAllString(d.log.String(), -1)); n != 3 {
			t.Errorf("want three lines %s, got %d in\n%s", line, n, d.log)
		}
	})
}
