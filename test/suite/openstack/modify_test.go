//go:build openstack

package openstack

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

func TestAVolumesTypeAndMetadataChange(t *testing.T) {
	d, cinder := startDriver(t, bed(t)), newCaller(t, bed(t), "lab-demo")
	v := newVolume(t, d, "xfs", func(r *csi.CreateVolumeRequest) {
		r.Parameters, r.MutableParameters = map[string]string{"type": "fast"}, map[string]string{"type": "standard", "metadata.team": "a"}
	})
	modify := func(code codes.Code, text string, parameters map[string]string) {
		t.Helper()
		_, err := d.controller.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: v.GetVolumeId(), MutableParameters: parameters})
		if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), text) {
			t.Fatalf("%v: want %s with %q, got %v", parameters, code, text, err)
		}
	}
	type shown struct {
		Type     string `json:"volume_type"`
		Status   string
		Updated  string `json:"updated_at"`
		Metadata map[string]string
	}
	want := func(kind, inStatus, team string) shown {
		t.Helper()
		var answer struct{ Volume shown }
		cinder.call(t, "GET", "/volumes/"+v.GetVolumeId(), nil, &answer)
		if got := answer.Volume; got.Type != kind || got.Status != inStatus || got.Metadata["team"] != team {
			t.Fatalf("want type %s, status %s, team %s, got %+v", kind, inStatus, team, got)
		}
		return answer.Volume
	}
	want("standard", "available", "a")
	modify(codes.InvalidArgument, "did you mean type?", map[string]string{"tpye": "fast"})
	modify(codes.InvalidArgument, "did you mean fast?", map[string]string{"type": "fsat"})
	modify(codes.InvalidArgument, "policy: on-demand", map[string]string{"type": "fast", "metadata.team": "b"}) // Cinder accepts it and does not do it
	want("standard", "available", "a")

	m := mount(t, d, v, "xfs")
	data := []byte("written before it moved " + rand.Text())
	testenv.Must(t, writeAt(m.file(), data))
	modify(codes.FailedPrecondition, "only allowed on available", map[string]string{"type": "multiattach"})
	modify(codes.OK, "", map[string]string{"metadata.team": "b"})
	want("standard", "in-use", "b")
	m.down(t, t.Context())

	modify(codes.OK, "", map[string]string{"type": "multiattach"}) // within its pool
	before := want("multiattach", "available", "b")
	modify(codes.OK, "", map[string]string{"type": "multiattach", "metadata.team": "b"})
	if after := want("multiattach", "available", "b"); after.Updated != before.Updated {
		t.Errorf("a change that was done was written again: %s, %s", before.Updated, after.Updated)
	}
	modify(codes.OK, "", map[string]string{"type": "fast", "policy": "on-demand", "metadata.team": "c"}) // to another pool
	want("fast", "available", "c")
	m.up(t, t.Context())
	m.wantData(t, data)
}

func TestTheRoomThatQuotasLeave(t *testing.T) {
	d := startDriver(t, bed(t))
	room := func(parameters map[string]string, zone string) int64 {
		t.Helper()
		request := &csi.GetCapacityRequest{Parameters: parameters}
		if zone != "" {
			request.AccessibleTopology = &csi.Topology{Segments: map[string]string{"topology.cinder.csi.openstack.org/zone": zone}}
		}
		got := testenv.Value(d.controller.GetCapacity(t.Context(), request))(t)
		return got.GetAvailableCapacity() >> 30
	}
	fast := map[string]string{"type": "fast"}
	if all, some, here := room(nil, ""), room(fast, ""), room(fast, "az2"); all <= 1000 || some > 1000 || some <= 0 || here != some {
		t.Errorf("%d GiB in all, %d GiB of the type fast, %d GiB in az2", all, some, here)
	}
	if got := room(fast, "moon"); got != 0 {
		t.Errorf("%d GiB in a zone that is not there", got)
	}
	_, err := d.controller.GetCapacity(t.Context(), &csi.GetCapacityRequest{Parameters: map[string]string{"type": "nowhere"}})
	if status.Code(err) != codes.InvalidArgument {
		t.Errorf("an unknown type: %v", err)
	}
}

func TestTheHealthOfAVolumeInError(t *testing.T) {
	d, cinder := startDriver(t, bed(t)), newAdmin(t, bed(t))
	v := newVolume(t, d, "")
	reset := func(to string) {
		cinder.call(t, "POST", "/volumes/"+v.GetVolumeId()+"/action", map[string]any{"os-reset_status": map[string]any{"status": to}}, nil)
	}
	get := func() []*csi.VolumeHealth_VolumeHealthEntry {
		got := testenv.Value(d.controller.ControllerGetVolumeHealth(t.Context(), &csi.ControllerGetVolumeHealthRequest{VolumeId: v.GetVolumeId()}))(t)
		return got.GetVolumeHealth().GetHealthStatuses()
	}
	if got := get(); len(got) != 0 {
		t.Errorf("a new volume: %v", got)
	}
	reset("error")
	t.Cleanup(func() { reset("available") })
	if got := get(); len(got) != 1 || got[0].GetReason() != "Error" || got[0].GetStatus() != csi.VolumeHealthErrorType_INACCESSIBLE {
		t.Errorf("in error: %v", got)
	}
	listed, err := d.controller.ControllerListVolumeHealth(t.Context(), &csi.ControllerListVolumeHealthRequest{})
	found := false
	for _, h := range listed.GetEntries() {
		found = found || h.GetVolumeId() == v.GetVolumeId()
	}
	if err != nil || !found {
		t.Errorf("the list lacks it: %v, %v", listed, err)
	}
}
