package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// describe lists what a person needs to see why no disk matches. That is every disk that could be a volume, with its
// cached serial. It adds links that name the volume and lead to another disk.
func (f *Finder) describe(id volume.ID) string {
	const limit = 32
	names, _ := f.names()
	var all []string
	for _, name := range names {
		serial := f.lastSerial(name)
		if !f.FromHypervisor(name) {
			if f.connected(name) {
				all = append(all, name+" (not of the hypervisor: a network or a program provides it)")
			}
			continue
		}
		all = append(all, fmt.Sprintf("%s (%s)", name, serial.public()))
	}
	text := "the disks on this server are "
	switch {
	case len(all) == 0:
		text = "this server has no disks"
	case len(all) > limit:
		text += strings.Join(all[:limit], ", ") + fmt.Sprintf(" and %d more", len(all)-limit)
	default:
		text += strings.Join(all, ", ")
	}
	return text + f.describeLinks(id)
}

// describeLinks names links in /dev/disk/by-id that carry the ID of the volume. They only help a person: udev may be
// late or absent, and a link that nobody maintains leads to whichever disk has the name today.
func (f *Finder) describeLinks(id volume.ID) string {
	links, _ := filepath.Glob(filepath.Join(f.options.DevRoot, "disk", "by-id", "*"))
	var text strings.Builder
	for _, link := range links {
		name := filepath.Base(link)
		bare := strings.ReplaceAll(string(id), "-", "")
		if !strings.HasSuffix(name, string(id)) && !strings.HasSuffix(name, string(id[:shortSerial])) && !strings.HasSuffix(name, bare) {
			continue
		}
		target, err := os.Readlink(link)
		if err != nil {
			continue
		}
		disk := filepath.Base(target)
		fmt.Fprintf(&text, "; the link %s leads to %s (%s), but only the serial of the disk itself counts", name, disk, f.lastSerial(disk).public())
	}
	return text.String()
}
