// Command node-devices keeps a node's /dev as its kernel would: one block device for each disk that the server's /sys/block shows. The device
// has the disk's number, so it is the same disk as the loop device of the OpenStack bed behind it. A disk with a serial also has a link in
// disk/by-id, as udev makes it: upstream's plugin finds disks only there.
//
//	node-devices /sys/block /dev
package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: node-devices SYS_BLOCK DEV")
	}
	if err := follow(os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}
}

func follow(sys, dev string) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return err
	}
	if err := watcher.Add(sys); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dev, byID), 0o755); err != nil {
		return err
	}
	made := map[string]disk{}
	for {
		if err := update(sys, dev, made); err != nil {
			return err
		}
		select {
		case event := <-watcher.Events:
			log.Print(event)
		case err := <-watcher.Errors:
			return err
		}
	}
}

// byID has the links of udev, in /dev.
const byID = "disk/by-id"

// disk is what /sys/block shows of one. It can be compared.
type disk struct {
	number uint64
	serial string // empty: udev makes no link
}

// update makes what is missing and removes what it made for disks that are gone.
func update(sys, dev string, made map[string]disk) error {
	disks, err := disks(sys)
	if err != nil {
		return err
	}
	for name, was := range made {
		if disks[name] != was {
			if err := unmake(dev, name, was); err != nil {
				return err
			}
			delete(made, name)
		}
	}
	for name, is := range disks {
		if made[name] == is {
			continue
		}
		if err := makeDisk(dev, name, is); err != nil {
			return fmt.Errorf("make the device %s: %w", name, err)
		}
		made[name] = is
	}
	return nil
}

func makeDisk(dev, name string, is disk) error {
	if err := unix.Mknod(filepath.Join(dev, name), unix.S_IFBLK|0o660, int(is.number)); err != nil {
		return err
	}
	if is.serial == "" {
		return nil
	}
	link := linkOf(dev, is)
	// Another disk with this serial may be there: the latest has the link, as with udev.
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink("../../"+name, link)
}

func unmake(dev, name string, was disk) error {
	if err := os.Remove(filepath.Join(dev, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if to, err := os.Readlink(linkOf(dev, was)); err == nil && to == "../../"+name {
		return os.Remove(linkOf(dev, was))
	}
	return nil
}

func linkOf(dev string, d disk) string { return filepath.Join(dev, byID, "virtio-"+d.serial) }

// disks reads each disk. A disk may go while it is read: it is none then.
func disks(sys string) (map[string]disk, error) {
	entries, err := os.ReadDir(sys)
	if err != nil {
		return nil, err
	}
	found := map[string]disk{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(sys, entry.Name(), "dev"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var major, minor uint32
		if _, err := fmt.Sscanf(strings.TrimSpace(string(content)), "%d:%d", &major, &minor); err != nil {
			return nil, fmt.Errorf("device number %q of %s: %w", content, entry.Name(), err)
		}
		serial, err := os.ReadFile(filepath.Join(sys, entry.Name(), "serial"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		found[entry.Name()] = disk{unix.Mkdev(major, minor), strings.TrimSpace(string(serial))}
	}
	return found, nil
}
