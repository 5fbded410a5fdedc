package image

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/tools/image"
)

// kernelModules are the modules of one kernel, by their names with underscores.
type kernelModules struct {
	dir     string
	all     image.Tree
	files   map[string]string   // name in the tree
	needs   map[string][]string // of the modules that were added
	builtin map[string]bool
}

func readModules(all image.Tree, dir string) (kernelModules, error) {
	k := kernelModules{dir: dir, all: all, files: map[string]string{}, needs: map[string][]string{}, builtin: map[string]bool{}}
	for name := range all {
		if strings.HasPrefix(name, dir+"/") && (strings.HasSuffix(name, ".ko") || strings.HasSuffix(name, ".ko.xz")) {
			k.files[moduleName(name)] = name
		}
	}
	list := all[dir+"/modules.builtin"]
	if list == nil || len(k.files) == 0 {
		return k, fmt.Errorf("no package has kernel modules in %s", dir)
	}
	for line := range strings.Lines(string(list.Data)) {
		k.builtin[moduleName(strings.TrimSpace(line))] = true
	}
	return k, nil
}

func moduleName(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".xz"), ".ko"), "-", "_")
}

// add copies modules and their dependencies into a tree. It returns the names of the modules that are not part of the kernel itself.
func (k kernelModules) add(to image.Tree, names []string) (load []string, err error) {
	for _, name := range names {
		name = moduleName(name)
		if k.builtin[name] {
			continue
		}
		load = append(load, name)
		if _, done := k.needs[name]; done {
			continue
		}
		file := k.files[name]
		if file == "" {
			return nil, fmt.Errorf("the kernel has no module %s", name)
		}
		data, err := decompress(file, k.all[file].Data)
		if err != nil {
			return nil, err
		}
		file = strings.TrimSuffix(file, ".xz")
		k.files[name] = file
		needs, err := moduleNeeds(data)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		to.AddFile(file, 0o644, data)
		if k.needs[name], err = k.add(to, needs); err != nil {
			return nil, err
		}
	}
	return load, nil
}

// mayLack are modules of some kernels only: newer ones have the checksums in libraries, which the modules of file systems need. Debian's kernels for
// clouds have a driver of SATA, the bus of libvirt's CD-ROM drives on q35, from 13 on.
var mayLack = []string{"crc32c_generic", "blake2b_generic", "ahci"}

// present leaves out the modules of mayLack that the kernel does not have.
func (k kernelModules) present(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.Contains(mayLack, name) && k.files[name] == "" && !k.builtin[name]
	})
}

// decompress returns a module as busybox loads it. Kernels since Debian 13 have compressed modules.
func decompress(name string, module []byte) ([]byte, error) {
	if !strings.HasSuffix(name, ".xz") {
		return module, nil
	}
	var out, said bytes.Buffer
	cmd := exec.Command("xz", "--decompress", "--stdout")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(module), &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("decompress %s: %w: %s", name, err, said.String())
	}
	return out.Bytes(), nil
}

// moduleNeeds reads the names of the modules that a module needs from its MODULE_INFO (Linux, include/linux/module.h).
func moduleNeeds(module []byte) ([]string, error) {
	file, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, fmt.Errorf("no section .modinfo")
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	var needs []string
	for field := range strings.SplitSeq(string(data), "\x00") {
		if list, ok := strings.CutPrefix(field, "depends="); ok && list != "" {
			needs = append(needs, strings.Split(list, ",")...)
		}
	}
	return needs, nil
}

// index writes the file in which modprobe finds modules and their dependencies, direct ones first.
func (k kernelModules) index(to image.Tree) {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(k.needs)) {
		fmt.Fprintf(&text, "%s:", k.relative(name))
		for _, needed := range k.closure(name) {
			fmt.Fprintf(&text, " %s", k.relative(needed))
		}
		text.WriteByte('\n')
	}
	to.AddFile(k.dir+"/modules.dep", 0o644, []byte(text.String()))
}

func (k kernelModules) relative(name string) string {
	return strings.TrimPrefix(k.files[name], k.dir+"/")
}

// closure lists all dependencies of a module, each before its own dependencies.
func (k kernelModules) closure(name string) []string {
	var list []string
	for _, direct := range k.needs[name] {
		list = append(list, append([]string{direct}, k.closure(direct)...)...)
	}
	// Of several entries only the last counts, or a dependency would come before a module that needs it.
	slices.Reverse(list)
	seen := map[string]bool{}
	list = slices.DeleteFunc(list, func(n string) bool { defer func() { seen[n] = true }(); return seen[n] })
	slices.Reverse(list)
	return list
}
