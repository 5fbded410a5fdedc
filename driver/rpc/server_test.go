package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

// controller answers CreateVolume as a test says.
type controller struct {
	csi.UnimplementedControllerServer
	create func(ctx context.Context) error
}

func (c controller) CreateVolume(ctx context.Context, _ *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	return &csi.CreateVolumeResponse{}, c.create(ctx)
}

// serve runs a server whose CreateVolume is create, until ctx ends. It gives a client and what the server returned.
func serve(t *testing.T, ctx context.Context, log *slog.Logger, create func(ctx context.Context) error) (csi.ControllerClient, chan error) {
	t.Helper()
	listener := memnet.Listen()
	server := NewServer(Services{Controller: controller{create: create}}, nil, Log(log), Codes("cinder.csi.openstack.org"), Deadline(time.Minute), Recover(log))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener, 20*time.Second) }()
	conn, err := grpc.NewClient("passthrough:///mem", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.Dial(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return csi.NewControllerClient(conn), ended
}

func TestAPanicIsAnErrorAndTheServerLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		panics := true
		client, _ := serve(t, ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
			if panics {
				panic("oh\nstack")
			}
			return nil
		})
		_, err := client.CreateVolume(ctx, &csi.CreateVolumeRequest{})
		if status.Code(err) != codes.Aborted { // what it had done is not known, so a create must not be final
			t.Errorf("got %v", err)
		}
		if text := status.Convert(err).Message(); !strings.Contains(text, "(panic: oh);") || strings.Contains(text, "\n") {
			t.Errorf("want the first line of the panic, got %q", text)
		}
		panics = false
		if _, err := client.CreateVolume(ctx, &csi.CreateVolumeRequest{}); err != nil {
			t.Error(err)
		}
	})
}

func TestWithTheEndRPCsUnderWayFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		client, ended := serve(t, ctx, slog.New(slog.DiscardHandler), func(context.Context) error {
			stop()
			time.Sleep(10 * time.Second) // virtual
			return nil
		})
		if _, err := client.CreateVolume(t.Context(), &csi.CreateVolumeRequest{}); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := client.CreateVolume(t.Context(), &csi.CreateVolumeRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("a new RPC was taken: %v", err)
		}
	})
}

func TestWithTheEndRPCsThatTakeTooLongAreCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		canceled := false
		client, ended := serve(t, ctx, slog.New(slog.DiscardHandler), func(ctx context.Context) error {
			stop()
			<-ctx.Done()
			canceled = true
			return ctx.Err()
		})
		start := time.Now()
		if _, err := client.CreateVolume(t.Context(), &csi.CreateVolumeRequest{}); err == nil {
			t.Error("no error")
		}
		if err := <-ended; err != nil || !canceled || time.Since(start) != 20*time.Second {
			t.Errorf("ended with %v after %v, canceled %v", err, time.Since(start), canceled)
		}
	})
}

// The client has its own timer, which must not end first.
func TestAnRPCEndsBeforeItsCallerAndSaysWhatItWaitedFor(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{3 * time.Minute: 3*time.Minute - 2*time.Second, 10 * time.Second: 9 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			ctx, _ = volume.WithProgress(ctx)
			began := time.Now()
			_, err := Deadline(time.Hour)(ctx, nil, nil, func(ctx context.Context, _ any) (any, error) {
				defer volume.BeginStep(ctx, "the outer step")()
				time.Sleep(time.Second)
				defer volume.BeginStep(ctx, "waiting for volume 1 to become available")()
				volume.NoteRequest(ctx, "req-1")
				<-ctx.Done()
				return nil, volume.AfterWrite(volume.Interrupted(ctx, "volume 1: its status is creating"))
			})
			if took := time.Since(began); took != want {
				t.Errorf("it ended after %v, want %v", took, want)
			}
			text := "volume 1: its status is creating (waiting for volume 1 to become available since 00:00:01 UTC, for " + (want - time.Second).String() + ") (OpenStack requests: req-1)"
			if err == nil || err.Error() != text || !volume.Is(err, volume.DeadlineExceeded) || !volume.MayHaveWritten(err) {
				t.Errorf("want %q, got %v", text, err)
			}
		})
	}
}

func TestAnRPCWithoutADeadlineGetsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		client, _ := serve(t, ctx, slog.New(slog.DiscardHandler), func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if _, err := client.CreateVolume(ctx, &csi.CreateVolumeRequest{}); status.Code(err) != codes.DeadlineExceeded || strings.Contains(err.Error(), "requests:") {
			t.Errorf("want the deadline, and no requests where none were sent, got %v", err)
		}
	})
}

// call makes one RPC with that request and gives the log of it.
func call(t *testing.T, level slog.Level, err error) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))
	chain := func(ctx context.Context, req any) (any, error) {
		info := &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Controller/ControllerPublishVolume"}
		return Log(log)(ctx, req, info, func(ctx context.Context, req any) (any, error) {
			return Codes("cinder.csi.openstack.org")(ctx, req, info, func(context.Context, any) (any, error) { return &csi.ControllerPublishVolumeResponse{}, err })
		})
	}
	_, _ = chain(t.Context(), &csi.ControllerPublishVolumeRequest{VolumeId: "vol", NodeId: "server", Secrets: map[string]string{"cloud": "hunter2"}})
	if strings.Contains(out.String(), "hunter2") {
		t.Errorf("a secret was logged: %s", out.String())
	}
	var lines []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		var entry map[string]any
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, entry)
	}
	return lines
}

func TestALogLevelSaysWhetherAPersonMustAct(t *testing.T) {
	for kind, want := range map[volume.Kind]string{
		volume.DataLoss: "ERROR", volume.Unknown: "ERROR", volume.Unauthenticated: "ERROR", volume.PermissionDenied: "ERROR", volume.Conflict: "WARN", volume.Busy: "WARN",
	} {
		lines := call(t, slog.LevelInfo, volume.Errorf(kind, "no"))
		if len(lines) != 1 || lines[0]["level"] != want {
			t.Errorf("%v: want level %s, got %v", kind, want, lines)
		}
	}
}

func TestEveryRPCIsOneLine(t *testing.T) {
	lines := call(t, slog.LevelInfo, volume.Errorf(volume.Conflict, "attached elsewhere"))
	if len(lines) != 1 {
		t.Fatalf("got %v", lines)
	}
	for key, want := range map[string]any{
		"level": "WARN", "msg": "rpc", "method": "ControllerPublishVolume", "volume": "vol", "server": "server", "code": "FailedPrecondition", "error": "attached elsewhere",
	} {
		if lines[0][key] != want {
			t.Errorf("%s: want %v, got %v", key, want, lines[0][key])
		}
	}
	if _, timed := lines[0]["duration"]; !timed {
		t.Error("no duration")
	}
	if ids, listed := lines[0]["requests"]; listed {
		t.Errorf("want no requests of an RPC that sent none, got %v", ids)
	}
}

func TestALineTellsWhatWasMadeAndUnderWhichRequests(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	for _, test := range []struct {
		method    string
		req, resp any
		want      string
	}{
		{"CreateVolume", &csi.CreateVolumeRequest{Name: "pvc"}, &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "v1"}}, `"method":"CreateVolume","volume":"v1","name":"pvc","requests":["req-1","req-2"]`},
		{"CreateSnapshot", &csi.CreateSnapshotRequest{Name: "p", SourceVolumeId: "v1"}, &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{SnapshotId: "p1"}}, `"volume":"v1","snapshot":"p1","name":"p"`},
		{"CreateVolume", &csi.CreateVolumeRequest{Name: "pvc"}, (*csi.CreateVolumeResponse)(nil), `"method":"CreateVolume","name":"pvc"`},
	} {
		out.Reset()
		info := &grpc.UnaryServerInfo{FullMethod: "/csi.v1.Controller/" + test.method}
		ctx, _ := volume.WithProgress(t.Context())
		_, _ = Log(log)(ctx, test.req, info, func(ctx context.Context, _ any) (any, error) {
			volume.NoteRequest(ctx, "req-1")
			volume.NoteRequest(ctx, "req-2")
			return test.resp, nil
		})
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("want %s in %s", test.want, &out)
		}
	}
}

func TestBodiesAreLoggedOnRequestWithoutSecrets(t *testing.T) {
	lines := call(t, levelBodies, nil)
	if len(lines) != 3 || !strings.Contains(lines[0]["body"].(string), "vol") || lines[1]["code"] != "OK" {
		t.Errorf("got %v", lines)
	}
}

func TestWhatOnlyLooksIsQuiet(t *testing.T) {
	looks := regexp.MustCompile(`^(Probe|Validate|(Controller|Node)?(Get|List))`)
	all := map[string]bool{}
	for _, service := range []grpc.ServiceDesc{csi.Identity_ServiceDesc, csi.Controller_ServiceDesc, csi.Node_ServiceDesc} {
		for _, m := range service.Methods {
			all[m.MethodName] = true
			if want := looks.MatchString(m.MethodName) && m.MethodName != "NodeGetInfo"; quiet[m.MethodName] != want {
				t.Errorf("%s: want quiet %v", m.MethodName, want)
			}
		}
	}
	for method := range quiet {
		if !all[method] {
			t.Errorf("there is no %s", method)
		}
	}
}
