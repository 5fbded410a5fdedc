//go:build vm

package vm

import (
	"slices"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/test/bed/vm/guest"
)

// kernelCase is a case of the matrix: a name, its buses, what of the kernel it depends on, and the test. A case that depends on nothing is for the
// first kernel and machine type pc alone.
type kernelCase struct {
	name  string
	buses []string
	why   string
	run   func(n *node, t *testing.T, bus string)
}

var (
	everyBus = []string{"virtio", "scsi", "nvme"}
	growing  = []string{"virtio", "scsi"} // QEMU does not grow NVMe disks
)

var cases = []kernelCase{
	{"ext4, mounted and grown in use", growing, "mount and growth of the format", func(n *node, t *testing.T, bus string) { n.live(t, bus, "ext4") }},
	{"xfs, mounted and grown in use", growing, "mount of the features that the image's mkfs makes", func(n *node, t *testing.T, bus string) { n.live(t, bus, "xfs") }},
	{"btrfs, mounted and grown in use", growing, "mount of the features that the image's mkfs makes", func(n *node, t *testing.T, bus string) { n.live(t, bus, "btrfs") }},
	{"raw block volume, grown in use", growing, "growth of a device in use", (*node).liveRaw},
	{"ext4 on NVMe, grown while unplugged", []string{"nvme"}, "", (*node).liveNVMe},
	{"every format, with default and with portable features", []string{"virtio"}, "mount of the features that the image's mkfs makes", (*node).everyFormat},
	{"disk of size 0 that gets its size later", growing, "how a disk tells its new size", (*node).sizeComesLater},
	{"disk removed while a pod writes", everyBus, "what calls on a disk answer that is gone", func(n *node, t *testing.T, bus string) {
		n.removed(t, claim{newVolume(), "ext4"}, bus)
	}},
	{"file system frozen in a pod that ends", growing, "", (*node).frozen},
	{"loop device on a file of the volume", growing, "", (*node).loopDevice},
	{"ext4 with a dirty journal from a snapshot", growing, "", (*node).dirtyJournal},
	{"xfs clone beside its original", growing, "mount of one UUID twice", (*node).cloneOfXFS},
	{"btrfs clone beside its original", growing, "mount of one UUID twice, since Linux 6.7", (*node).cloneOfBtrfs},
	{"raw block volume with another reader open", growing, "when the kernel writes out a block device", (*node).otherReader},
}

// plugged are the cases that depend on how the machine plugs disks: q35 runs them on every kernel.
var plugged = []string{"ext4, mounted and grown in use", "disk removed while a pod writes"}

// Every case runs on the first kernel and machine type pc. On the other kernels and on q35 those run that depend on the kernel or the slots.
func TestCases(t *testing.T) {
	for i, kernel := range strings.Split(*kernels, ",") {
		for _, m := range []guest.Machine{{Kernel: kernel, SCSI: true}, {Kernel: kernel, Type: "q35", Ports: 4}} {
			t.Run(kernel+" "+m.String(), func(t *testing.T) {
				t.Parallel()
				n := boot(t, m)
				n.startDriver(t, nil, "--with-topology=false")
				for _, c := range cases {
					if c.why == "" && (i > 0 || m.Type != "") || i > 0 && m.Type != "" && !slices.Contains(plugged, c.name) {
						continue
					}
					for _, bus := range c.buses {
						if m.Type != "" && !slices.Contains([]string{"virtio", "nvme"}, bus) {
							continue // its disks take no slot
						}
						t.Run(bus+", "+c.name, func(t *testing.T) { c.run(n, t, bus) })
					}
				}
			})
		}
	}
}

// everyFormat makes and mounts each file system that the driver makes, and writes to it.
func (n *node) everyFormat(t *testing.T, bus string) {
	for _, f := range []struct {
		fsType   string
		portable bool
	}{{"ext2", false}, {"ext3", false}, {"ext4", false}, {"ext4", true}, {"xfs", false}, {"xfs", true}, {"btrfs", false}} {
		features := "default"
		c := claim{newVolume(), f.fsType}
		request := &csi.NodeStageVolumeRequest{VolumeId: c.id, StagingTargetPath: c.staging(), VolumeCapability: c.capability()}
		if f.portable {
			features = contract.FeaturesPortable
			request.VolumeContext = map[string]string{contract.ContextFormatPrefix + contract.ParameterFeatures: features}
		}
		t.Run(f.fsType+" "+features, func(t *testing.T) {
			n.plug(t, guest.Disk{Volume: c.id, Bus: bus})
			_, err := n.NodeStageVolume(n.ctx(t), request)
			must(t, "stage", err)
			must(t, "publish", n.publish(n.ctx(t), c))
			sum := n.write(t, c)
			must(t, "release", n.release(n.ctx(t), c))
			n.use(t, c)
			n.wantData(t, c, sum)
			must(t, "release", n.release(n.ctx(t), c))
			n.unplug(t, c.id)
			recordCase(t, n, bus, f.fsType+" with "+features+" features", "made, mounted, written and mounted again")
		})
	}
}
