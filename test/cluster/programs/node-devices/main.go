// Command node-devices keeps a node's /dev as its kernel would: one block device for each disk that the server's /sys/block shows. The device
// has the disk's number, so it is the same disk as the loop device of the OpenStack bed behind it.
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
	made := map[string]uint64{}
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

// update makes what is missing and removes what it made for disks that are gone.
func update(sys, dev string, made map[string]uint64) error {
	disks, err := disks(sys)
	if err != nil {
		return err
	}
	for name, number := range made {
		if disks[name] != number {
			if err := os.Remove(filepath.Join(dev, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			delete(made, name)
		}
	}
	for name, number := range disks {
		if made[name] == number {
			continue
		}
		if err := unix.Mknod(filepath.Join(dev, name), unix.S_IFBLK|0o660, int(number)); err != nil {
			return fmt.Errorf("make the device %s: %w", name, err)
		}
		made[name] = number
	}
	return nil
}

// disks reads the device number of each disk. A disk may go while it is read: it is none then.
func disks(sys string) (map[string]uint64, error) {
	entries, err := os.ReadDir(sys)
	if err != nil {
		return nil, err
	}
	found := map[string]uint64{}
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
		found[entry.Name()] = unix.Mkdev(major, minor)
	}
	return found, nil
}
