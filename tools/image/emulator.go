package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// emulatorName is the file of the emulator in the root file system of a probe. It is never part of an image.
const emulatorName = "emulator"

// emulators are the programs of Debian's qemu-user-static, by the architecture whose programs they run.
var emulators = map[string]string{"amd64": "usr/bin/qemu-x86_64-static", "arm64": "usr/bin/qemu-aarch64-static"}

// Emulator downloads the program that runs programs of another architecture. Nothing is installed: the kernel need not know the
// architecture (binfmt_misc), because Probe starts the emulator itself.
func Emulator(ctx context.Context, debian Debian, architecture string) ([]byte, error) {
	name, known := emulators[architecture]
	if !known {
		return nil, fmt.Errorf("no emulator for %s; there are emulators for amd64 and arm64", architecture)
	}
	debian.Dir = filepath.Join(debian.Dir, "emulator")
	packages, err := debian.Fetch(ctx, []string{"qemu-user-static"})
	if err != nil {
		return nil, fmt.Errorf("fetch the emulator for %s: %w", architecture, err)
	}
	all := NewTree()
	for i := range packages {
		if err := all.AddPackage(ctx, &packages[i]); err != nil {
			return nil, err
		}
	}
	file := all.Find(name)
	if file == nil {
		return nil, fmt.Errorf("package qemu-user-static has no %s", name)
	}
	return file.Data, nil
}

// emulate puts the emulator before a command. The kernel reads the first line of a script, and an emulator does not. So the
// shell, which every script of the image names, gets the script.
func emulate(root string, args []string) []string {
	content, err := os.ReadFile(filepath.Join(root, args[0]))
	if err == nil && bytes.HasPrefix(content, []byte("#!")) {
		args = append([]string{"/usr/bin/sh"}, args...)
	}
	return append([]string{"/" + emulatorName}, args...)
}
