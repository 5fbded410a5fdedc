package image

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Tools are the programs of the image besides the driver, and the configuration that they read. fsck runs fsck.xfs and
// fsck.btrfs, which are scripts, so the image has a shell.
var Tools = []string{
	"mkfs.ext2", "mkfs.ext3", "mkfs.ext4", "fsck.ext2", "fsck.ext3", "fsck.ext4", "resize2fs", "dumpe2fs", "tune2fs", "etc/mke2fs.conf",
	"mkfs.xfs", "fsck.xfs", "xfs_growfs", "xfs_repair", "xfs_io",
	"mkfs.btrfs", "fsck.btrfs", "btrfs",
	"blkid", "wipefs", "fsck", "mount", "umount", "findmnt", "lsblk", "blockdev",
	"sh", "etc/os-release",
}

// Packages are the Debian packages of the tools. ca-certificates is there for TLS to the clouds, base-files for scanners that
// look for the Debian version.
var Packages = []string{"base-files", "btrfs-progs", "ca-certificates", "dash", "e2fsprogs", "mount", "util-linux", "xfsprogs"}

const (
	certificates = "usr/share/ca-certificates/"
	bundle       = "etc/ssl/certs/ca-certificates.crt" // where Go and OpenSSL look
)

// Root makes the lowest layer of an image from Debian packages: the tools, the files that they need, and the certificate
// authorities. It returns the packages with a file in the layer. For each of them, the layer has the licence and the entry for
// scanners.
func Root(ctx context.Context, debian Debian, packages, tools []string) (Tree, []Package, error) {
	fetched, err := debian.Fetch(ctx, packages)
	if err != nil {
		return nil, nil, err
	}
	all := NewTree()
	for i := range fetched {
		if err := all.AddPackage(ctx, &fetched[i]); err != nil {
			return nil, nil, err
		}
	}
	root, err := all.Slim(tools)
	if err != nil {
		return nil, nil, err
	}
	if err := root.addCertificates(all); err != nil {
		return nil, nil, err
	}
	var used []Package
	for _, p := range fetched {
		if !root.has(p.Files) && p.Name != "ca-certificates" {
			continue
		}
		if err := root.addOrigin(all, p); err != nil {
			return nil, nil, err
		}
		used = append(used, p)
	}
	return root, used, nil
}

// addCertificates writes one file of all certificate authorities, in the order of their names, as update-ca-certificates does.
func (t Tree) addCertificates(all Tree) error {
	var text []byte
	for _, name := range all.names() {
		if strings.HasPrefix(name, certificates) && path.Ext(name) == ".crt" {
			text = append(text, all[name].Data...)
		}
	}
	if len(text) == 0 {
		return fmt.Errorf("no certificate authority below %s", certificates)
	}
	t.AddFile(bundle, 0o644, text)
	return nil
}

func (t Tree) addOrigin(all Tree, p Package) error {
	licence := all.Find("usr/share/doc/" + p.Name + "/copyright")
	if licence == nil {
		return fmt.Errorf("package %s has no copyright file", p.Name)
	}
	t.AddFile("usr/share/doc/"+p.Name+"/copyright", 0o644, licence.Data)
	t.AddFile("var/lib/dpkg/status.d/"+p.Name, 0o644, slices.Clone(p.Control))
	return nil
}
