package rpc

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/operation"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

type meter []string

func (m *meter) Began(method string) func(string, string) {
	*m = append(*m, method)
	return func(code, cause string) { *m = append(*m, code, cause) }
}

func TestEveryRPCIsMeasuredWithItsCodeAndCause(t *testing.T) {
	var seen meter
	for name, test := range map[string]struct {
		err   error
		cause string
	}{
		"Probe": {}, "GetCapacity": {err: status.Error(codes.Unimplemented, "no")},
		"ControllerPublishVolume": {newStatusError("ControllerPublishVolume", "d", volume.Errorf(volume.Busy, "busy")), "volume.busy"},
	} {
		seen = nil
		_, got := Measure(seen.Began)(t.Context(), nil, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Service/" + name}, func(context.Context, any) (any, error) { return nil, test.err })
		if status.Code(got) != status.Code(test.err) {
			t.Errorf("error %v, want the RPC's own", got)
		}
		if diff := cmp.Diff(meter{name, status.Code(test.err).String(), test.cause}, seen); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestASlowRPCIsLoggedWithItsStepEachTimeItsDurationDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &testenv.Log{}
		log := slog.New(slog.NewJSONHandler(out, nil))
		var list operation.List
		req, info := &csi.ControllerUnpublishVolumeRequest{VolumeId: "v", NodeId: "s"}, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Controller/ControllerUnpublishVolume"}
		_, err := Track(&list, log)(t.Context(), req, info, func(ctx context.Context, _ any) (any, error) {
			time.Sleep(10 * time.Second)
			defer volume.BeginStep(ctx, "waiting for volume v to become detached from server s")()
			volume.NoteState(ctx, "volume v: detaching")
			volume.NoteRequest(ctx, "req-1")
			time.Sleep(100 * time.Second)
			if pending := list.Pending(); len(pending) != 1 || pending[0].Object != "volume v server s" || pending[0].Step == "" {
				t.Errorf("listed: %+v", pending)
			}
			return nil, status.Error(codes.DeadlineExceeded, "still detaching")
		})
		if status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("the RPC's own error is lost: %v", err)
		}
		time.Sleep(time.Hour) // no line after the end
		var got []string
		for line := range strings.Lines(out.String()) {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Fatal(err)
			}
			delete(fields, "time")
			text, _ := json.Marshal(fields)
			got = append(got, string(text))
		}
		want := []string{}
		for _, times := range [][2]string{{"15000000000", "5000000000"}, {"30000000000", "20000000000"}, {"60000000000", "50000000000"}} {
			want = append(want, `{"duration":`+times[0]+`,"level":"INFO","method":"ControllerUnpublishVolume","msg":"rpc in progress","requests":["req-1"],"server":"s",`+
				`"state":"volume v: detaching","step":"waiting for volume v to become detached from server s","step_duration":`+times[1]+`,"volume":"v"}`)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if pending := list.Pending(); len(pending) != 0 {
			t.Errorf("an hour later: %+v", pending)
		}
	})
}

// Who writes a PersistentVolume chooses the texts of a request, of up to a megabyte.
func TestLongTextsOfARequestAreCut(t *testing.T) {
	long := strings.Repeat("ä", 1<<19)
	for method, req := range map[string]any{
		"DeleteVolume":             &csi.DeleteVolumeRequest{VolumeId: long},
		"ControllerPublishVolume":  &csi.ControllerPublishVolumeRequest{VolumeId: long, NodeId: long},
		"CreateVolume":             &csi.CreateVolumeRequest{Name: long},
		"CreateSnapshot":           &csi.CreateSnapshotRequest{Name: long, SourceVolumeId: long},
		"DeleteSnapshot":           &csi.DeleteSnapshotRequest{SnapshotId: long},
		"NodeUnpublishVolume":      &csi.NodeUnpublishVolumeRequest{VolumeId: long, TargetPath: long},
		"ControllerGetVolume":      &csi.ControllerGetVolumeRequest{VolumeId: long},
		"ControllerGetVolumeStats": &csi.NodeGetVolumeStatsRequest{VolumeId: long},
	} {
		var list operation.List
		out := &testenv.Log{}
		log, info := slog.New(slog.NewTextHandler(out, nil)), &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Controller/" + method}
		_, err := Track(&list, log)(t.Context(), req, info, func(ctx context.Context, req any) (any, error) {
			return Log(log)(ctx, req, info, func(context.Context, any) (any, error) {
				return nil, newStatusError(method, "d", volume.Errorf(volume.InvalidArgument, "volume %q has %q", long, long))
			})
		})
		pending := list.Pending()
		if len(pending) != 1 || len(pending[0].Object) > 2<<10 || !utf8.ValidString(pending[0].Object) {
			t.Errorf("%s: the list has %.100v", method, pending)
		}
		if text := status.Convert(err).Message(); len(text) > 5<<10 || !utf8.ValidString(text) {
			t.Errorf("%s: an error of %d bytes: %.100s", method, len(text), text)
		}
		if n := len(out.String()); n > 16<<10 {
			t.Errorf("%s: %d bytes of log", method, n)
		}
	}
}

func TestAnRPCAboutTheDriverIsNotListed(t *testing.T) {
	var list operation.List
	_, _ = Track(&list, slog.New(slog.DiscardHandler))(t.Context(), &csi.ProbeRequest{}, &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Identity/Probe"}, func(context.Context, any) (any, error) {
		if pending := list.Pending(); len(pending) != 0 {
			t.Errorf("got %+v", pending)
		}
		return nil, nil
	})
}
