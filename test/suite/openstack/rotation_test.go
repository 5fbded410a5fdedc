//go:build openstack

package openstack

import (
	"context"
	"crypto/rand"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// freeAddress is an address that no process listens on now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener := testenv.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	return listener.Addr().String()
}

// hasMetric reports whether /metrics has the line.
func hasMetric(t *testing.T, address, line string) bool {
	t.Helper()
	resp := testenv.Value(http.Get("http://" + address + "/metrics"))(t)
	defer resp.Body.Close()
	page := testenv.Value(io.ReadAll(resp.Body))(t)
	return strings.Contains(string(page), "\n"+line+"\n")
}

// The test replaces a credential as its owner would. It creates a new credential, swaps the mounted file as kubelet does, waits until the
// metric shows the reload, and deletes the old credential. Meanwhile two hundred RPCs are in progress, among them creates and deletes. None
// fails.
func TestACredentialIsReplacedUnderTwoHundredRPCs(t *testing.T) {
	const readers, makers = 190, 10
	bed := bed(t)
	owner, address := newKeystone(t, bed, "lab-demo"), freeAddress(t)
	old := owner.newCredential(t, nil)
	conf := filepath.Join(t.TempDir(), "cloud.conf")
	project(t, conf, owner.conf(old))
	d := startDriverWith(t, bed, conf, "--http-endpoint="+address)
	id := newVolume(t, d, "ext4").GetVolumeId()

	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	var stop atomic.Bool
	var underWay, ended, failed atomic.Int64
	var all sync.WaitGroup
	call := func(rpc func(ctx context.Context) error) bool {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
		defer cancel()
		underWay.Add(1)
		err := rpc(ctx)
		underWay.Add(-1)
		ended.Add(1)
		if err != nil && failed.Add(1) < 10 {
			t.Error(err)
		}
		return err == nil
	}
	for range readers {
		all.Go(func() {
			for !stop.Load() && ctx.Err() == nil {
				call(func(ctx context.Context) error {
					return csitest.Outcome(d.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id}))
				})
			}
		})
	}
	for range makers {
		all.Go(func() {
			for !stop.Load() && ctx.Err() == nil {
				var v *csi.CreateVolumeResponse
				made := call(func(ctx context.Context) (err error) {
					v, err = d.controller.CreateVolume(ctx, csitest.Claim("bed-rotation-"+rand.Text(), csitest.As(csitest.Single("ext4"))))
					return err
				})
				if made {
					call(func(ctx context.Context) error {
						return csitest.Outcome(d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.GetVolume().GetVolumeId()}))
					})
				}
			}
		})
	}
	until := func(what string, done func() bool) {
		t.Helper()
		for !done() {
			select {
			case <-ctx.Done():
				stop.Store(true)
				t.Fatalf("%s: not within eight minutes", what)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	more := func(n int64) func() bool {
		before := ended.Load()
		return func() bool { return ended.Load() >= before+n }
	}
	const line = `cinder_csi_config_reloads_total{result="success"} `
	until("the first RPCs", more(readers))
	if !hasMetric(t, address, line+"0") {
		t.Error("a reload before anything changed")
	}
	fresh := owner.newCredential(t, nil)
	atSwap := underWay.Load()
	project(t, conf, owner.conf(fresh))
	until("the reload", func() bool { return hasMetric(t, address, line+"1") })
	atDeletion := underWay.Load()
	owner.delete(t, ctx, old)
	until("RPCs with the new credential", more(3*(readers+makers)))
	stop.Store(true)
	all.Wait()
	if atSwap < readers || atDeletion < readers {
		t.Errorf("only %d RPCs were under way when the file changed, and %d when the old credential was deleted", atSwap, atDeletion)
	}
	if n := failed.Load(); n > 0 || !hasMetric(t, address, `cinder_csi_config_reloads_total{result="failure"} 0`) {
		t.Errorf("%d of %d RPCs failed", n, ended.Load())
	}
	t.Logf("%d RPCs, %d under way when the file changed, %d when the old credential was deleted; %d failed", ended.Load(), atSwap, atDeletion, failed.Load())
}
