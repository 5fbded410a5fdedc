//go:build linux

package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// loop is a loop device over a file. The plane keeps it open. The kernel removes it when nothing has it open or mounted.
type loop struct {
	file   *os.File
	path   string // /dev/loop7
	number uint64
}

func openLoop(image string) (*loop, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("loop devices: %w", err)
	}
	defer control.Close()
	backing, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer backing.Close() // the device keeps it
	for {
		free, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, fmt.Errorf("a free loop device: %w", err)
		}
		l, err := configure(uint32(free), backing)
		if !errors.Is(err, unix.EBUSY) { // another process took it first
			return l, err
		}
	}
}

func configure(minor uint32, backing *os.File) (*loop, error) {
	const loopMajor = 7
	l := &loop{path: fmt.Sprintf("/dev/loop%d", minor), number: unix.Mkdev(loopMajor, minor)}
	// A container often has its own /dev, where the kernel creates no nodes.
	if err := unix.Mknod(l.path, unix.S_IFBLK|0o600, int(l.number)); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("make %s: %w", l.path, err)
	}
	var err error
	if l.file, err = os.OpenFile(l.path, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	config := unix.LoopConfig{Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], backing.Name())
	if err := unix.IoctlLoopConfigure(int(l.file.Fd()), &config); err != nil {
		return nil, errors.Join(fmt.Errorf("show %s as %s: %w", backing.Name(), l.path, err), l.file.Close())
	}
	return l, nil
}

// Close closes the device, after all writes have reached the file.
func (l *loop) Close() error { return errors.Join(l.file.Sync(), l.file.Close()) }

// grow gives the device the size of its file.
func (l *loop) grow() error { return unix.IoctlSetInt(int(l.file.Fd()), unix.LOOP_SET_CAPACITY, 0) }

// sectors is the size in the sysfs of the device.
func (l *loop) sectors() (string, error) {
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(l.path), "size"))
	return string(text), err
}

// loops finds the loop devices over files below dir, by name.
func loops(dir string) (map[string]string, error) {
	backings, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for _, path := range backings {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the device disappeared in between
		}
		file := strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), " (deleted)")
		if strings.HasPrefix(file, filepath.Clean(dir)+"/") {
			found[strings.Split(path, "/")[3]] = file
		}
	}
	return found, nil
}

// clearLoops removes loop devices over files below dir that an earlier process left. The kernel keeps mounted ones until their
// unmount; nothing uses them any more.
func clearLoops(dir string) error {
	left, err := loops(dir)
	for name := range left {
		device, openErr := os.Open("/dev/" + name)
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		if clearErr := unix.IoctlSetInt(int(device.Fd()), unix.LOOP_CLR_FD, 0); clearErr != nil && !errors.Is(clearErr, unix.ENXIO) {
			err = errors.Join(err, fmt.Errorf("remove /dev/%s: %w", name, clearErr))
		}
		err = errors.Join(err, device.Close())
	}
	return err
}

// awaitNoLoops waits until no loop device over a file below dir exists, and names those that remain.
func awaitNoLoops(dir string, patience time.Duration) error {
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		left, err := loops(dir)
		if err != nil || len(left) == 0 {
			return err
		}
		if time.Now().After(end) {
			for name, file := range left {
				err = errors.Join(err, fmt.Errorf("/dev/%s of %s is still in use; the kernel removes it after the unmount and the last close", name, filepath.Base(file)))
			}
			return err
		}
	}
}
