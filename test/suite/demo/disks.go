package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// lacking returns the reason why volumes cannot have data on this machine; empty if they can.
func lacking() string {
	if os.Geteuid() != 0 {
		return "loop devices and mounts need root"
	}
	for _, program := range []string{"mkfs.ext4", "resize2fs", "blkid", "wipefs", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return program + " is not installed (Debian: apt-get install e2fsprogs util-linux)"
		}
	}
	return ""
}

// unmountBelow unmounts all mounts below dir, including those that a killed demo left.
func unmountBelow(dir string) error {
	const mountinfo, lazily = "/proc/self/mountinfo", 2 // MNT_DETACH
	text, err := os.ReadFile(mountinfo)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		dir = resolved
	}
	lines := strings.Split(string(text), "\n")
	for _, line := range slices.Backward(lines) { // the inner mounts first
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], dir+"/") {
			if unmountErr := syscall.Unmount(f[4], lazily); unmountErr != nil {
				err = errors.Join(err, fmt.Errorf("unmount %s: %w", f[4], unmountErr))
			}
		}
	}
	return err
}
