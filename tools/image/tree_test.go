package image

import (
	"archive/tar"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// archive makes a tar of headers; a regular file's content is its name.
func archive(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var w bytes.Buffer
	stream := tar.NewWriter(&w)
	for _, h := range headers {
		content := []byte{}
		if h.Typeflag == tar.TypeReg {
			content = []byte(h.Name)
			h.Size = int64(len(content))
		}
		if err := stream.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Close(); err != nil {
		t.Fatal(err)
	}
	return w.Bytes()
}

func TestPackagesOfTheOldLayoutLandBelowUsrWithoutSetUserID(t *testing.T) {
	t.Parallel()
	tree := NewTree()
	names, err := tree.AddTar(bytes.NewReader(archive(t,
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeDir, Name: "./bin/", Mode: 0o755},
		tar.Header{Typeflag: tar.TypeReg, Name: "./bin/mount", Mode: 0o4755},
		tar.Header{Typeflag: tar.TypeLink, Name: "./bin/mount2", Linkname: "./bin/mount"},
	)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"usr/bin/mount", "usr/bin/mount2"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if want, got := fs.FileMode(0o755), tree["usr/bin/mount"].Mode; want != got {
		t.Errorf("want mode %v, got %v", want, got)
	}
	if tree["usr/bin/mount"] != tree["usr/bin/mount2"] {
		t.Error("the hard link is another file")
	}
	if tree["bin"].Link != "usr/bin" {
		t.Error("/bin is no longer a link")
	}
}

func TestTarThatCannotBeKeptIsRefused(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]tar.Header{
		"leaves the root":          {Typeflag: tar.TypeReg, Name: "../etc/passwd"},
		"link leaves the root":     {Typeflag: tar.TypeLink, Name: "a", Linkname: "../b"},
		"link before its original": {Typeflag: tar.TypeLink, Name: "a", Linkname: "b"},
		"device":                   {Typeflag: tar.TypeBlock, Name: "dev/vda"},
	} {
		if _, err := NewTree().AddTar(bytes.NewReader(archive(t, h))); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestPathsAreResolvedAsTheKernelDoes(t *testing.T) {
	t.Parallel()
	tree := NewTree()
	tree.AddFile("usr/bin/dash", 0o755, nil)
	tree.AddSymlink("usr/bin/sh", "dash")
	tree.AddSymlink("usr/bin/absolute", "/bin/dash")
	tree.AddSymlink("usr/bin/up", "../../../../bin/sh")
	tree.AddSymlink("usr/bin/loop", "loop")
	tree.AddSymlink("usr/bin/broken", "nothing")
	for name, want := range map[string][]string{
		"usr/bin/dash":  {"usr/bin/dash"},
		"/bin/sh":       {"bin", "usr/bin/sh", "usr/bin/dash"},
		"/bin/absolute": {"bin", "usr/bin/absolute", "bin", "usr/bin/dash"},
		"/bin/up":       {"bin", "usr/bin/up", "bin", "usr/bin/sh", "usr/bin/dash"},
		"/bin/loop":     nil,
		"/bin/broken":   nil,
	} {
		if diff := cmp.Diff(want, tree.Resolve(name)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHardLinksAreWrittenOnce(t *testing.T) {
	t.Parallel()
	tree := Tree{}
	tree.AddFile("a", 0o755, []byte("content"))
	tree["b"] = tree["a"]
	var w bytes.Buffer
	if err := tree.WriteTar(&w, noon); err != nil {
		t.Fatal(err)
	}
	stream := tar.NewReader(&w)
	for _, want := range []tar.Header{{Name: "a", Typeflag: tar.TypeReg}, {Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}} {
		got, err := stream.Next()
		if err != nil {
			t.Fatal(err)
		}
		if want.Name != got.Name || want.Typeflag != got.Typeflag || want.Linkname != got.Linkname || got.Uid != 0 || !got.ModTime.Equal(noon) {
			t.Errorf("want %+v, got %+v", want, *got)
		}
	}
}

// program is a dynamically linked ELF file that asks for an interpreter and libraries, and holds nothing else.
func program(interpreter string, libraries ...string) []byte {
	const header, prog, section, dyn = 64, 56, 64, 16
	names := []byte{0}
	var dynamic []elf.Dyn64
	for _, library := range libraries {
		dynamic = append(dynamic, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: uint64(len(names))})
		names = append(append(names, library...), 0)
	}
	text := append([]byte(interpreter), 0)
	at := uint64(header + prog + 3*section)
	var w bytes.Buffer
	for _, part := range []any{
		elf.Header64{
			Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
			Type:  uint16(elf.ET_DYN), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT), Ehsize: header,
			Phoff: header, Phentsize: prog, Phnum: 1, Shoff: header + prog, Shentsize: section, Shnum: 3, Shstrndx: 1,
		},
		elf.Prog64{Type: uint32(elf.PT_INTERP), Off: at, Filesz: uint64(len(text)), Memsz: uint64(len(text))},
		elf.Section64{},
		elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: at + uint64(len(text)), Size: uint64(len(names))},
		elf.Section64{Type: uint32(elf.SHT_DYNAMIC), Link: 1, Off: at + uint64(len(text)+len(names)), Size: uint64(dyn * len(dynamic)), Entsize: dyn},
		text, names, dynamic,
	} {
		if err := binary.Write(&w, binary.LittleEndian, part); err != nil {
			panic(err) // a bytes.Buffer takes everything of fixed size
		}
	}
	return w.Bytes()
}

func debian() Tree {
	tree := NewTree()
	tree.AddFile("usr/sbin/mkfs", 0o755, program("/lib64/ld.so", "libblk.so.1", "libc.so"))
	tree.AddFile("usr/sbin/fsck", 0o755, []byte("#!/bin/sh -f\nexit\n"))
	tree.AddFile("usr/bin/dash", 0o755, program("/lib64/ld.so", "libc.so"))
	tree.AddSymlink("usr/bin/sh", "dash")
	tree.AddSymlink("usr/lib64/ld.so", "/lib/x86_64-linux-gnu/ld.so")
	tree.AddFile("usr/lib/x86_64-linux-gnu/ld.so", 0o755, nil)
	tree.AddFile("usr/lib/x86_64-linux-gnu/libc.so", 0o644, nil)
	tree.AddSymlink("usr/lib/x86_64-linux-gnu/libblk.so.1", "libblk.so.1.2")
	tree.AddFile("usr/lib/x86_64-linux-gnu/libblk.so.1.2", 0o644, program("/lib64/ld.so", "libuuid.so"))
	tree.AddFile("usr/lib/x86_64-linux-gnu/libuuid.so", 0o644, nil)
	tree.AddFile("usr/bin/python3", 0o755, nil)
	tree.AddFile("etc/mke2fs.conf", 0o644, nil)
	return tree
}

func TestSlimKeepsWhatTheToolsNeedAndNothingElse(t *testing.T) {
	t.Parallel()
	base := NewTree()
	for _, c := range []struct {
		wanted string
		want   []string
	}{
		{"mkfs", []string{
			"usr/lib/x86_64-linux-gnu/ld.so", "usr/lib/x86_64-linux-gnu/libblk.so.1", "usr/lib/x86_64-linux-gnu/libblk.so.1.2",
			"usr/lib/x86_64-linux-gnu/libc.so", "usr/lib/x86_64-linux-gnu/libuuid.so", "usr/lib64/ld.so", "usr/sbin/mkfs",
		}},
		{"fsck", []string{
			"usr/bin/dash", "usr/bin/sh", "usr/lib/x86_64-linux-gnu/ld.so", "usr/lib/x86_64-linux-gnu/libc.so", "usr/lib64/ld.so", "usr/sbin/fsck",
		}},
		{"etc/mke2fs.conf", []string{"etc/mke2fs.conf"}},
	} {
		slim, err := debian().Slim([]string{c.wanted})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range slim.names() {
			if base[name] == nil && !slim[name].Mode.IsDir() {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.wanted, diff)
		}
	}
}

func TestSlimNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for missing, wanted := range map[string]string{
		"usr/lib/x86_64-linux-gnu/libuuid.so": "mkfs",
		"usr/lib/x86_64-linux-gnu/ld.so":      "mkfs",
		"usr/bin/dash":                        "fsck",
		"usr/sbin/fsck":                       "fsck",
	} {
		tree := debian()
		delete(tree, missing)
		if _, err := tree.Slim([]string{wanted}); err == nil || !strings.Contains(err.Error(), "no package has") {
			t.Errorf("without %s: want an error that says so, got %v", missing, err)
		}
	}
}

func FuzzTarStaysBelowTheRoot(f *testing.F) {
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeReg, Name: "./bin/a"}, tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "bin/a"}))
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeSymlink, Name: "usr/bin/x", Linkname: "../../../x"}))
	f.Add(archive(f, tar.Header{Typeflag: tar.TypeReg, Name: "/a/../../b"}))
	f.Fuzz(func(t *testing.T, content []byte) {
		tree := NewTree()
		if _, err := tree.AddTar(bytes.NewReader(content)); err != nil {
			return
		}
		for name := range tree {
			if name != path.Clean(name) || path.IsAbs(name) || strings.HasPrefix(name, "..") {
				t.Errorf("the tree has the name %q", name)
			}
			for _, passed := range tree.Resolve(name) {
				if tree[passed] == nil && passed != "." {
					t.Errorf("%q resolves to %q, which is not there", name, passed)
				}
			}
		}
	})
}

func TestDirectoriesComeBeforeTheirFiles(t *testing.T) {
	t.Parallel()
	tree := NewTree()
	tree.AddFile("usr/share/doc/x/copyright", 0o644, nil)
	seen := map[string]bool{".": true}
	for _, name := range tree.names() {
		if !seen[path.Dir(name)] {
			t.Errorf("%s comes before its directory", name)
		}
		seen[name] = true
	}
}
