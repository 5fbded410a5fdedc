//go:build vm

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/agent"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// A pod may connect a disk with any serial and any content, by a volume of type iscsi. Target and initiator are real, and run in the guest.
func TestADiskOfAnISCSISessionIsNeverAVolume(t *testing.T) {
	for _, kernel := range strings.Split(*kernels, ",") {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			n := boot(t, guest.Machine{Kernel: kernel, SCSI: true})
			n.startDriver(t, nil, "--with-topology=false")
			n.sh(t, "modprobe iscsi_tcp; mkdir -p /var/run")
			_, err := n.Start(agent.Command{Args: []string{"/usr/sbin/tgtd", "-f"}, Log: "/run/tgtd.log"})
			must(t, "start the target", err)
			n.sh(t, "for i in $(seq 100); do tgtadm --lld iscsi --mode target --op show && exit; usleep 100000; done 2>&1; cat /run/tgtd.log; exit 1")
			for i, bus := range []string{"virtio", "scsi"} {
				t.Run(bus, func(t *testing.T) { n.forgedSerial(t, i+1, bus) })
			}
			n.stopDriver(t)
			n.sh(t, "rm -f /csi/*")
			t.Run("config drive", n.forgedConfigDrive)
		})
	}
}

// forgedSerial connects a disk with the serial of a volume before the volume is attached, and leaves it there beside the true disk.
func (n *node) forgedSerial(t *testing.T, target int, bus string) {
	c := claim{newVolume(), "ext4"}
	file := filepath.Join(t.TempDir(), "forged")
	must(t, "make the forged disk", os.WriteFile(file, nil, 0o600))
	must(t, "make the forged disk", os.Truncate(file, 2<<20))
	testenv.Run(t, "mkfs.ext4", "-q", file)
	forged := n.connect(t, target, c.id, file)
	if serial := n.sh(t, "cat /sys/block/"+forged+"/device/vpd_pg80 | tr -d '\\000'"); !strings.Contains(serial, c.id) {
		t.Fatalf("the trap is not set: want the forged disk to have the serial %s, it has %q", c.id, serial)
	}
	refused(t, "stage while only the forged disk is there", n.stage(bounded(t), c), []string{c.id}, codes.DeadlineExceeded)
	refused(t, "publish it as a block device", n.publish(bounded(t), claim{id: c.id}), []string{c.id}, codes.DeadlineExceeded, codes.NotFound)
	d := n.plug(t, guest.Disk{Volume: c.id, Bus: bus, LUN: 1})
	n.use(t, c)
	if mounted := n.sh(t, "grep ' "+c.target()+" ' /proc/self/mountinfo | cut -d ' ' -f 3"); mounted != d.number {
		t.Errorf("want the true disk mounted, %s, got %s; the forged one is %s", d.number, mounted, forged)
	}
	must(t, "release", n.release(n.ctx(t), c))
	n.unplug(t, c.id)
	recordCase(t, n, bus, "iSCSI disk with the serial of a volume", "never used, before the true disk and beside it")
}

// forgedConfigDrive connects a disk with the label of a config drive, which names another zone.
func (n *node) forgedConfigDrive(t *testing.T) {
	forged := n.connect(t, 9, "forged", makeDriveOf(t, "iso9660", "az-forged"))
	if label := n.sh(t, "blkid -o value -s LABEL /dev/"+forged); label != "config-2" {
		t.Fatalf("the trap is not set: want the label config-2, got %q", label)
	}
	n.sh(t, `printf '[Metadata]\nsearch-order=configDrive\n' > `+cloudConf)
	n.startDriver(t, nil)
	zone := func() string {
		info, err := n.NodeGetInfo(n.ctx(t), &csi.NodeGetInfoRequest{})
		if err != nil {
			return "an error"
		}
		return info.GetAccessibleTopology().GetSegments()[contract.TopologyKeyOf(contract.DriverName)]
	}
	if got := zone(); got == "az-forged" {
		t.Errorf("want no zone from the forged config drive")
	}
	n.plug(t, guest.Disk{Volume: "config-drive", Bus: "virtio", NoSerial: true, File: makeDrive(t, "iso9660")})
	if got := zone(); got != driveZone {
		t.Errorf("want the zone of the true config drive, %s, got %s", driveZone, got)
	}
	recordCase(t, n, "virtio", "iSCSI disk with the label of a config drive", "never read, before the true drive and beside it")
}

// connect copies a file into the guest and connects it by iSCSI as a disk. It returns the name of the disk.
func (n *node) connect(t *testing.T, target int, serial, file string) (name string) {
	t.Helper()
	content, err := os.ReadFile(file)
	must(t, "read the disk's file", err)
	copied := fmt.Sprintf("/run/target%d", target)
	o, err := n.Run(agent.Command{Args: []string{"/busybox/sh", "-c", "cat > " + copied}, Input: content})
	if err != nil || o.Code != 0 {
		t.Fatalf("copy the disk's file: %v, %s", err, o.Output)
	}
	n.sh(t, fmt.Sprintf(`iqn=iqn.2026-01.example:%d
tgtadm --lld iscsi --mode target --op new --tid %[1]d --targetname $iqn
tgtadm --lld iscsi --mode logicalunit --op new --tid %[1]d --lun 1 --backing-store %[2]s
tgtadm --lld iscsi --mode logicalunit --op update --tid %[1]d --lun 1 --params scsi_sn=%[3]s
tgtadm --lld iscsi --mode target --op bind --tid %[1]d --initiator-address ALL
iscsistart -i iqn.2026-01.example:node -t $iqn -g 1 -a 127.0.0.1 -p 3260`, target, copied, serial))
	return n.sh(t, fmt.Sprintf(`for i in $(seq 100); do
  for d in /sys/block/sd*; do
    s=$(readlink -f $d); s=${s%%%%/target*}
    [ "$(cat $s/iscsi_session/session*/targetname 2>/dev/null)" != iqn.2026-01.example:%d ] || { basename $d; exit; }
  done
  usleep 100000
done
exit 1`, target))
}
