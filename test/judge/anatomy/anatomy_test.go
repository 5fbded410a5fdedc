package anatomy

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

func TestPartsAddUpAndWhatWasNotWaitedForTakesNoTime(t *testing.T) {
	got, err := Parts(at(0), []Moment{{at(1), Scheduler, "a"}, {at(4), Cloud, "b"}, {at(3), Driver, "c"}, {at(6), Kubelet, "d"}})
	want := []Part{{Scheduler, "a", 1}, {Cloud, "b", 3}, {Driver, "c", 0}, {Kubelet, "d", 2}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := Parts(at(0), []Moment{{Layer: Cloud, Step: "lost"}}); err == nil || !strings.Contains(err.Error(), "lost") {
		t.Errorf("a moment that no log has: got the error %v", err)
	}
}

const ownLog = `[pod/controller-1/driver] 2026-11-22T12:00:02.500000001Z time=2026-11-22T12:00:02.500Z level=INFO msg=rpc method=CreateVolume volume=11111111-1111-1111-1111-111111111111 name=pvc-1 requests=[req-1] duration=1.5s code=OK
[pod/controller-1/driver] 2026-11-22T12:00:03.000000000Z time=2026-11-22T12:00:03Z level=WARN msg=rpc method=ControllerPublishVolume volume=v server=s duration=250ms code=Aborted kind=busy written=false error="in use"
[pod/controller-1/driver] 2026-11-22T12:00:03.100000000Z time=2026-11-22T12:00:03Z level=INFO msg="rpc in progress" method=CreateVolume duration=15s
`

const upstreamLog = `[pod/plugin-1/cinder-csi-plugin] 2026-11-22T12:00:00.000000000Z I1122 12:00:00.000000       1 utils.go:101] [ID:7] GRPC response: {"volume":{}}
[pod/plugin-1/cinder-csi-plugin] 2026-11-22T12:00:01.000000000Z I1122 12:00:01.000000       1 utils.go:95] [ID:8] GRPC call: /csi.v1.Controller/CreateVolume
[pod/plugin-1/cinder-csi-plugin] 2026-11-22T12:00:01.000000000Z I1122 12:00:01.000000       1 utils.go:96] [ID:8] GRPC request: {"capacity_range":{},"name":"pvc-1"}
[pod/plugin-2/cinder-csi-plugin] 2026-11-22T12:00:01.500000000Z I1122 12:00:01.500000       1 utils.go:95] [ID:8] GRPC call: /csi.v1.Node/NodeStageVolume
[pod/plugin-2/cinder-csi-plugin] 2026-11-22T12:00:01.500000000Z I1122 12:00:01.500000       1 utils.go:96] [ID:8] GRPC request: {"staging_target_path":"/x","volume_id":"v"}
[pod/plugin-2/cinder-csi-plugin] 2026-11-22T12:00:02.000000000Z E1122 12:00:02.000000       1 utils.go:99] [ID:8] GRPC error: no
[pod/plugin-1/cinder-csi-plugin] 2026-11-22T12:00:04.000000000Z I1122 12:00:04.000000       1 utils.go:101] [ID:8] GRPC response: {"volume":{"volume_id":"w"}}
`

func TestTheLogsOfBothDriversGiveTheirRPCs(t *testing.T) {
	for _, test := range []struct {
		name, log string
		want      []RPC
	}{
		{"this driver", ownLog, []RPC{
			{"CreateVolume", "pvc-1", at(1), at(2.5), false},
			{"ControllerPublishVolume", "v", at(2.75), at(3), true},
		}},
		{"upstream, two pods with the same number", upstreamLog, []RPC{
			{"CreateVolume", "pvc-1", at(1), at(4), false},
			{"NodeStageVolume", "v", at(1.5), at(2), true},
		}},
	} {
		got, err := ReadRPCs(strings.NewReader(test.log))
		if diff := cmp.Diff(test.want, got, cmpopts.EquateApproxTime(time.Millisecond)); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	if _, err := ReadRPCs(strings.NewReader("[a] 2026-11-22T12:00:03Z time=x level=INFO msg=rpc method=Probe code=OK\n")); err == nil {
		t.Error("a line without a duration is accepted")
	}
}

func TestTheLogsOfTheCloudGiveTheEndOfItsWork(t *testing.T) {
	const volume = "11111111-1111-1111-1111-111111111111"
	cinder := `2026-11-22 12:00:01.000 10 INFO cinder.volume.flows.manager.create_volume [None req-c user demo - - default default] Volume ` + volume + `: being created as raw with specification: {}
2026-11-22 12:00:02.000 10 INFO cinder.volume.manager [None req-c user demo - - default default] Created volume successfully.
2026-11-22 12:00:09.000 10 INFO cinder.volume.manager [None req-x user demo - - default default] Another.
`
	api := `2026-11-22 12:00:05.000 11 INFO cinder.api.openstack.wsgi [req-n req-1 user demo - - default default] http://x returned with HTTP 200
2026-11-22 12:00:05.500 11 INFO eventlet.wsgi.server [req-n req-1 user demo - - default default] 127.0.0.1 "POST /v3/attachments HTTP/1.1" status: 200  len: 9 time: 0.1
2026-11-22 12:00:06.000 11 INFO eventlet.wsgi.server [None req-2 user demo - - default default] 127.0.0.1 "GET /v3/volumes HTTP/1.1" status: 200  len: 9 time: 0.1
`
	nova := `2026-11-22 12:00:04.000 12 INFO nova.compute.manager [None req-n user demo - - default default] [instance: a] Attaching volume ` + volume + ` to /dev/vdb
`
	got, err := ReadWork(strings.NewReader(cinder), strings.NewReader(api), strings.NewReader(nova))
	local := func(seconds float64) time.Time {
		return time.Date(2026, 11, 22, 12, 0, 0, 0, time.Local).Add(time.Duration(seconds * float64(time.Second)))
	}
	want := []Work{{"create", volume, local(2)}, {"attach", volume, local(5.5)}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func two() Measurement {
	return Measurement{When: "a day", Runs: []Run{
		{"claim", "upstream", 1, []Part{{Cloud, "made", 3}, {Driver, "answered", 2}}},
		{"claim", "this driver", 1, []Part{{Cloud, "made", 3}, {Driver, "answered", 0.5}}},
		{"claim", "this driver", 2, []Part{{Cloud, "made", 4}, {Driver, "answered", 0.5}}},
	}}
}

func TestThePageComparesTheDriversByLayerAndByStep(t *testing.T) {
	got := two().Markdown()
	for _, want := range []string{
		"| claim | this driver | 2 | 4.0 (3.5 to 4.5) | 3.50 | 0.50 |",
		"| claim | upstream | 1 | 5.0 (5.0 to 5.0) | 3.00 | 2.00 |",
		"| until | layer | this driver | upstream |",
		"| answered | driver | 0.50 | 2.00 |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q:\n%s", want, got)
		}
	}
}
