package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Slim returns a new root file system with the named programs and files of t only. It adds what they need to run: interpreters,
// shared libraries, and the symlinks on their paths. A bare name is a program in one of the usual directories; the name of a file
// has a slash.
func (t Tree) Slim(wanted []string) (Tree, error) {
	s := slimmer{from: t, to: NewTree()}
	for _, name := range wanted {
		found := name
		if !strings.Contains(name, "/") {
			found = t.lookup(name, "usr/sbin", "usr/bin")
		}
		if found == "" || t.Find(found) == nil {
			return nil, fmt.Errorf("no package has %s", name)
		}
		if err := s.keep(found); err != nil {
			return nil, err
		}
	}
	return s.to, nil
}

func (t Tree) lookup(name string, dirs ...string) string {
	for _, dir := range dirs {
		if full := path.Join(dir, name); t.Find(full) != nil {
			return full
		}
	}
	return ""
}

// libraries are the directories that the loader searches without a cache or configuration, that of the architecture first.
func (t Tree) libraries() []string {
	dirs := []string{"usr/lib", "usr/lib64"}
	for name, f := range t {
		if f.Mode.IsDir() && path.Dir(name) == "usr/lib" && strings.HasSuffix(name, "-linux-gnu") {
			dirs = append([]string{name}, dirs...)
		}
	}
	slices.Sort(dirs[:len(dirs)-2])
	return dirs
}

type slimmer struct{ from, to Tree }

func (s slimmer) keep(name string) error {
	passed := s.from.Resolve(name)
	if len(passed) == 0 {
		return fmt.Errorf("a program needs %s, which no package has", name)
	}
	for _, p := range passed {
		if s.to[p] != nil {
			continue
		}
		f := s.from[p]
		s.to.add(p, f)
		if f.Mode.IsRegular() {
			if err := s.keepNeeded(p, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s slimmer) keepNeeded(name string, f *File) error {
	if bytes.HasPrefix(f.Data, []byte("#!")) {
		line, _, _ := strings.Cut(string(f.Data[2:]), "\n")
		return s.keep(strings.Fields(line)[0])
	}
	if !bytes.HasPrefix(f.Data, []byte(elf.ELFMAG)) {
		return nil
	}
	interpreter, libraries, err := needed(f.Data)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if interpreter != "" {
		if err := s.keep(interpreter); err != nil {
			return err
		}
	}
	for _, library := range libraries {
		found := s.from.lookup(library, s.from.libraries()...)
		if found == "" {
			return fmt.Errorf("%s needs the library %s, which no package has", name, library)
		}
		if err := s.keep(found); err != nil {
			return err
		}
	}
	return nil
}

// needed reads what a program or library requires from the loader: its interpreter ("" if it has none) and its libraries.
func needed(data []byte) (interpreter string, libraries []string, err error) {
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return "", nil, err
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP {
			text := make([]byte, p.Filesz)
			if _, err := p.ReadAt(text, 0); err != nil {
				return "", nil, err
			}
			interpreter = strings.TrimRight(string(text), "\x00")
		}
	}
	libraries, err = file.ImportedLibraries()
	return interpreter, libraries, err
}

// has reports whether any of the names is a file of the tree.
func (t Tree) has(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		f := t[name]
		return f != nil && f.Mode.Type() != fs.ModeDir
	})
}
