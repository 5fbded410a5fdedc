//go:build openstack

package guests

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
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

// A volume moves to another pool while a guest writes to it. Nova copies the disk below the guest (swap volume), and Cinder deletes the old image.
// All that the guest wrote before, during and after that is on the disk, and the volume can do what it could before.
func TestAVolumeInUseMovesToAnotherPool(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.serverNamed(t, "node-az1"))
	images := r.rbd(t, "ls", "az1-standard")
	c := r.create(t, n, claim{fsType: "ext4"}, 2, ofType("standard"))
	n.use(t, c)
	sum := n.write(t, c, "before")
	writer := n.keepWriting(t, c)
	for _, to := range []string{"fast", "standard", "fast"} {
		before := writer.files(t)
		timed(t, "to "+to+" in use", func() error { return r.retype(t, c, to) })
		if after := writer.files(t); after <= before {
			t.Errorf("want files written during the move, got %d before and %d after", before, after)
		}
		if v, err := r.volume(t, c.id); err != nil || v.Type != to || v.Status != "in-use" {
			t.Errorf("want the volume in-use, of type %s; got %+v %v", to, v, err)
		}
	}
	written := writer.stop(t)
	eventually(t, "Cinder has deleted the image in the first pool", func() error {
		if got := r.rbd(t, "ls", "az1-standard"); got != images {
			return fmt.Errorf("there were %q, now %q", images, got)
		}
		return nil
	})
	n.wantData(t, c, "before", sum)
	timed(t, "attach again", func() error { return n.attach(t, c) })
	timed(t, "expand in use: controller", func() error { return r.expand(t, c, 3<<30) })
	timed(t, "expand in use: device", func() error { return n.awaitSize(t, c, 3<<30) })
	timed(t, "expand in use: file system", func() error { return n.expand(t, c, 3<<30) })
	timed(t, "snapshot in use", func() error { r.snapshot(t, c); return nil })

	n.leave(t, c) // what is read next comes from the disk, not from the guest's memory
	n.use(t, c)
	n.wantData(t, c, "before", sum)
	if got := n.sh(t, "cd "+c.target()+" && md5sum -c sums | grep -c ': OK$'"); got != fmt.Sprint(written) {
		t.Errorf("want %d files that were written during the moves, got %s", written, got)
	}
	n.leave(t, c)
}

// Nova moves no disk that QEMU decrypts, and Cinder encrypts none on Ceph. The guest goes on with its disk.
func TestAnEncryptedVolumeInUseStaysWhereItIs(t *testing.T) {
	r := newRegion(t)
	n := r.node(t, r.serverNamed(t, "node-az1"))
	c := r.create(t, n, claim{fsType: "ext4"}, 1, ofType(encryptedType))
	n.use(t, c)
	sum := n.write(t, c, "before")
	timed(t, "to standard in use", func() error {
		err := r.retype(t, c, "standard")
		if status.Code(err) != codes.FailedPrecondition {
			return fmt.Errorf("want FailedPrecondition, got %w", err)
		}
		return nil
	})
	if v, err := r.volume(t, c.id); err != nil || v.Type != encryptedType || v.Status != "in-use" {
		t.Errorf("want the volume in-use, of type %s; got %+v %v", encryptedType, v, err)
	}
	later := n.write(t, c, "after")
	n.leave(t, c)
	n.use(t, c)
	n.wantData(t, c, "before", sum)
	n.wantData(t, c, "after", later)
	n.leave(t, c)
}

// retype changes the type of a volume, also if that moves it.
func (r *region) retype(t *testing.T, c claim, to string) error {
	t.Helper()
	return csitest.Outcome(r.ControllerModifyVolume(within(t, patience), &csi.ControllerModifyVolumeRequest{
		VolumeId: c.id, MutableParameters: map[string]string{"type": to, "policy": "on-demand"},
	}))
}

// writing is a process in a guest that writes file after file to a volume, each with its checksum.
type writing struct {
	*node
	claim
}

func (n *node) keepWriting(t *testing.T, c claim) writing {
	t.Helper()
	script := `rm -f /run/writer.*; cd "$1" && n=0; while ! [ -e /run/writer.stop ]; do n=$((n+1))
dd if=/dev/urandom of=during.$n bs=64k count=4 conv=fsync && md5sum during.$n >>sums || echo $n >>/run/writer.failed; done; touch /run/writer.ended`
	_, err := n.Start(agent.Command{Args: []string{"/busybox/sh", "-c", script, "sh", c.target()}, Log: "/run/writes.log"})
	must(t, "start to write", err)
	w := writing{n, c}
	t.Cleanup(func() {
		n.try("touch /run/writer.stop; for i in $(seq 100); do [ -e /run/writer.ended ] && break; usleep 100000; done")
	})
	eventually(t, "the guest writes", func() error {
		if w.files(t) == 0 {
			return errors.New("there is no file yet")
		}
		return nil
	})
	return w
}

// files is how many files there are.
func (w writing) files(t *testing.T) int {
	t.Helper()
	n, err := strconv.Atoi(w.sh(t, "cd "+w.target()+" && touch sums && wc -l <sums"))
	must(t, "count the files", err)
	return n
}

// stop ends the writing and returns the number of files. Each write must have succeeded.
func (w writing) stop(t *testing.T) int {
	t.Helper()
	w.sh(t, "touch /run/writer.stop; while ! [ -e /run/writer.ended ]; do usleep 100000; done")
	if failed := w.sh(t, "cat /run/writer.failed 2>/dev/null || true"); failed != "" {
		t.Errorf("want no failed write, got those of the files %s: %s", failed, w.try("tail -n 5 /run/writes.log"))
	}
	written := w.files(t)
	t.Logf("%d files were written during the moves", written)
	return written
}
