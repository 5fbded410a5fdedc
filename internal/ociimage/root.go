package ociimage

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

// Root makes the lowest layer of the image: the tools, the files that they need, and the certificate authorities. For each
// package with a file in the layer, it adds the licence and the entry for scanners.
func Root(ctx context.Context, debian Debian) (Tree, error) {
	packages, err := debian.Fetch(ctx, Packages)
	if err != nil {
		return nil, err
	}
	all := NewTree()
	for i := range packages {
		if err := all.AddPackage(ctx, &packages[i]); err != nil {
			return nil, err
		}
	}
	root, err := all.Slim(Tools)
	if err != nil {
		return nil, err
	}
	if err := root.addCertificates(all); err != nil {
		return nil, err
	}
	for _, p := range packages {
		if !root.has(p.Files) && p.Name != "ca-certificates" {
			continue
		}
		if err := root.addOrigin(all, p); err != nil {
			return nil, err
		}
	}
	return root, nil
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

// Driver makes the upper layer: the driver, and the name under which upstream's manifests start it.
func Driver(program []byte) Tree {
	t := Tree{}
	t.AddFile("usr/bin/cinder-csi-driver", 0o755, program)
	t.AddSymlink("usr/bin/cinder-csi-plugin", "cinder-csi-driver")
	return t
}

// Env is the environment of the driver and of the tools it runs.
var Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin"}

// New makes the driver image for the architecture of the given program.
func New(ctx context.Context, program []byte, debian Debian) (Image, error) {
	architecture, err := architectureOf(program)
	if err != nil {
		return Image{}, fmt.Errorf("the driver is not a program for Linux: %w", err)
	}
	interpreter, _, err := needed(program)
	if err != nil {
		return Image{}, fmt.Errorf("read the driver: %w", err)
	}
	if interpreter != "" {
		return Image{}, fmt.Errorf("the driver needs %s; build it with CGO_ENABLED=0", interpreter)
	}
	root, err := Root(ctx, debian.For(architecture))
	if err != nil {
		return Image{}, fmt.Errorf("make the root file system for %s: %w", architecture, err)
	}
	return Image{
		Architecture: architecture,
		Entrypoint:   []string{"/bin/cinder-csi-driver"}, Env: Env,
		Labels: map[string]string{
			"org.opencontainers.image.title":    "cinder-csi-driver",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source":   "https://github.com/cinder-csi/cinder-csi",
		},
		Layers: []Tree{root, Driver(program)},
	}, nil
}
