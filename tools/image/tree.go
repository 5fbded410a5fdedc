// Package image builds an OCI image from Debian packages and a program, without a container engine or a registry.
//
// A root file system is a Tree in memory. Its layer depends only on the content and on one given time. The image keeps only what
// the named tools need, so it has no package manager, no Python and no locale data.
package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a file, directory or symlink of a Tree.
type File struct {
	Mode fs.FileMode // type and permissions; never set-user-id or set-group-id
	Data []byte      // of a regular file
	Link string      // of a symlink
}

// Tree is a file system. Its names are clean relative paths whose parents are no symlinks. Two names with one *File are hard
// links.
type Tree map[string]*File

// merged are the directories that Debian keeps below /usr. Packages may still use the old names.
var merged = []string{"bin", "lib", "lib64", "sbin"}

// NewTree returns an empty root file system: the directories and links of every Debian system, and its users.
func NewTree() Tree {
	t := Tree{}
	for _, name := range merged {
		t[name] = &File{Mode: fs.ModeSymlink | 0o777, Link: "usr/" + name}
	}
	for _, name := range []string{"dev", "etc", "proc", "run", "sys", "usr", "var", "var/lib"} {
		t[name] = &File{Mode: fs.ModeDir | 0o755}
	}
	for _, name := range merged {
		t["usr/"+name] = &File{Mode: fs.ModeDir | 0o755}
	}
	t["tmp"] = &File{Mode: fs.ModeDir | fs.ModeSticky | 0o777}
	t.AddFile("etc/passwd", 0o644, []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/nonexistent:/sbin/nologin\n"))
	t.AddFile("etc/group", 0o644, []byte("root:x:0:\nnonroot:x:65532:\n"))
	t.AddFile("etc/nsswitch.conf", 0o644, []byte("hosts: files dns\n"))
	return t
}

// AddFile adds a regular file, and its directories if they are missing.
func (t Tree) AddFile(name string, mode fs.FileMode, data []byte) {
	t.add(name, &File{Mode: mode.Perm(), Data: data})
}

// AddSymlink adds a symlink, and its directories if they are missing.
func (t Tree) AddSymlink(name, target string) {
	t.add(name, &File{Mode: fs.ModeSymlink | 0o777, Link: target})
}

func (t Tree) add(name string, f *File) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if t[dir] == nil {
			t[dir] = &File{Mode: fs.ModeDir | 0o755}
		}
	}
	t[name] = f
}

// AddTar adds everything in a tar stream and returns the names that it added. It drops owners, times and set-id bits.
func (t Tree) AddTar(r io.Reader) ([]string, error) {
	var names []string
	for stream := tar.NewReader(r); ; {
		h, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return names, nil
		} else if err != nil {
			return nil, fmt.Errorf("read tar: %w", err)
		}
		name, err := t.place(h.Name)
		if err != nil {
			return nil, err
		}
		f, err := t.entry(h, stream)
		if err != nil {
			return nil, fmt.Errorf("read %s from tar: %w", h.Name, err)
		}
		if old := t[name]; name == "." || old != nil && old.Mode.IsDir() && f.Mode.IsDir() {
			continue
		}
		t.add(name, f)
		names = append(names, name)
	}
}

func (t Tree) entry(h *tar.Header, content io.Reader) (*File, error) {
	mode := h.FileInfo().Mode() &^ (fs.ModeSetuid | fs.ModeSetgid)
	switch h.Typeflag {
	case tar.TypeReg:
		data, err := io.ReadAll(content)
		return &File{Mode: mode, Data: data}, err
	case tar.TypeDir:
		return &File{Mode: mode}, nil
	case tar.TypeSymlink:
		return &File{Mode: mode, Link: h.Linkname}, nil
	case tar.TypeLink:
		name, err := t.place(h.Linkname)
		if err == nil && t[name] == nil {
			err = fmt.Errorf("it is a hard link to %s, which does not precede it", h.Linkname)
		}
		return t[name], err
	}
	return nil, fmt.Errorf("entries of type %q are not supported", h.Typeflag)
}

// place returns the name for a tar entry: clean, and below the merged directories.
func (t Tree) place(name string) (string, error) {
	name = path.Clean(strings.TrimPrefix(name, "/"))
	if name == ".." || strings.HasPrefix(name, "../") {
		return "", fmt.Errorf("tar entry %s is outside the root", name)
	}
	top, _, _ := strings.Cut(name, "/")
	if slices.Contains(merged, top) {
		return "usr/" + name, nil
	}
	return name, nil
}

// Resolve follows a path as the kernel does. It returns every symlink on the path, in order, and then the target. If the path has
// no target, it returns nothing.
func (t Tree) Resolve(name string) []string {
	const most = 40 // links, as in path_resolution(7)
	var passed []string
	rest, at := strings.Split(path.Clean(strings.TrimPrefix(name, "/")), "/"), "."
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		at = path.Join(at, part)
		if at == ".." || strings.HasPrefix(at, "../") {
			at = "."
			continue
		}
		f := t[at]
		switch {
		case at == ".":
		case f == nil || links == most:
			return nil
		case f.Mode.Type() == fs.ModeSymlink:
			links++
			passed = append(passed, at)
			rest = append(strings.Split(path.Clean(f.Link), "/"), rest...)
			if at = path.Dir(at); path.IsAbs(f.Link) {
				at = "."
			}
		}
	}
	return append(passed, at)
}

// Find returns the regular file at the end of a path, or nil.
func (t Tree) Find(name string) *File {
	names := t.Resolve(name)
	if len(names) == 0 {
		return nil
	}
	if f := t[names[len(names)-1]]; f != nil && f.Mode.IsRegular() {
		return f
	}
	return nil
}

// names are the names of the tree, parents before children, hard links in a fixed order.
func (t Tree) names() []string { return slices.Sorted(maps.Keys(t)) }

// WriteTar writes the tree as a layer: owner root, one time for all, names in order.
func (t Tree) WriteTar(w io.Writer, when time.Time) error {
	stream := tar.NewWriter(w)
	first := map[*File]string{}
	for _, name := range t.names() {
		f := t[name]
		h := &tar.Header{Name: name, Mode: int64(f.Mode.Perm()), ModTime: when, Format: tar.FormatPAX}
		if f.Mode&fs.ModeSticky != 0 {
			h.Mode |= 0o1000
		}
		switch original, seen := first[f]; {
		case f.Mode.IsDir():
			h.Typeflag, h.Name = tar.TypeDir, name+"/"
		case f.Mode.Type() == fs.ModeSymlink:
			h.Typeflag, h.Linkname = tar.TypeSymlink, f.Link
		case seen:
			h.Typeflag, h.Linkname = tar.TypeLink, original
		default:
			h.Typeflag, h.Size = tar.TypeReg, int64(len(f.Data))
			first[f] = name
		}
		if err := stream.WriteHeader(h); err != nil {
			return fmt.Errorf("write %s to tar: %w", name, err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := stream.Write(f.Data); err != nil {
				return fmt.Errorf("write %s to tar: %w", name, err)
			}
		}
	}
	return stream.Close()
}

// Extract writes the tree below an existing directory, with the rights of the process. Hard links become copies.
func (t Tree) Extract(dir string) error {
	for _, name := range t.names() {
		f, full := t[name], filepath.Join(dir, filepath.FromSlash(name))
		var err error
		switch {
		case f.Mode.IsDir():
			err = os.Mkdir(full, 0o755)
		case f.Mode.Type() == fs.ModeSymlink:
			err = os.Symlink(f.Link, full)
		default:
			err = os.WriteFile(full, f.Data, f.Mode.Perm())
		}
		if err != nil {
			return err
		}
	}
	return nil
}
