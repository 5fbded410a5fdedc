//go:build openstack

package guests

import (
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Cinder accepts the change between a plain and an encrypted type, and fails at it on Ceph. The volume stays what it was, with its bytes, and the
// driver says so.
func TestATypeChangeDoesNotEncryptOnCeph(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.serverNamed(t, "node-az1"))
	for _, types := range [][2]string{{"standard", encryptedType}, {encryptedType, "standard"}} {
		c := r.create(t, n, claim{fsType: "ext4"}, 1, ofType(types[0]))
		n.use(t, c)
		sum := n.write(t, c, "kept")
		n.leave(t, c)
		for policy, want := range map[string]codes.Code{"never": codes.InvalidArgument, "on-demand": codes.FailedPrecondition} {
			timed(t, types[0]+" to "+types[1]+", "+policy, func() error {
				_, err := r.ControllerModifyVolume(within(t, patience), &csi.ControllerModifyVolumeRequest{
					VolumeId: c.id, MutableParameters: map[string]string{"type": types[1], "policy": policy},
				})
				t.Logf("ControllerModifyVolume: %v", err)
				if got := status.Code(err); got != want {
					t.Errorf("%s to %s, %s: want %s, got %v", types[0], types[1], policy, want, err)
				}
				return nil
			})
		}
		if v, err := r.volume(t, c.id); err != nil || v.Type != types[0] || v.Status != "available" {
			t.Errorf("want the volume available, of type %s; got %+v %v", types[0], v, err)
		}
		n.use(t, c)
		n.wantData(t, c, "kept", sum)
		n.leave(t, c)
	}
}
