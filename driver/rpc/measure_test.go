package rpc

import (
	"context"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type meter []string

func (m *meter) Began(method, object string) func(string) {
	*m = append(*m, method+" "+object)
	return func(code string) { *m = append(*m, code) }
}

func TestEveryRPCIsMeasuredWithItsObjectAndItsCode(t *testing.T) {
	var seen meter
	for _, tc := range []struct {
		req  any
		name string
		err  error
	}{
		{&csi.ProbeRequest{}, "/csi.v1.Identity/Probe", nil},
		{&csi.ControllerPublishVolumeRequest{VolumeId: "v", NodeId: "n"}, "/csi.v1.Controller/ControllerPublishVolume", status.Error(codes.Aborted, "busy")},
	} {
		_, err := Measure(&seen)(t.Context(), tc.req, &grpc.UnaryServerInfo{FullMethod: tc.name}, func(context.Context, any) (any, error) { return nil, tc.err })
		if err != tc.err {
			t.Errorf("error %v, want the RPC's own", err)
		}
	}
	want := []string{"Probe ", "OK", "ControllerPublishVolume volume v server n", "Aborted"}
	if len(seen) != len(want) {
		t.Fatalf("seen %q", seen)
	}
	for i := range want {
		if seen[i] != want[i] {
			t.Errorf("seen %q, want %q", seen[i], want[i])
		}
	}
}
