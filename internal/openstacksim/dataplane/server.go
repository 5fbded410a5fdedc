//go:build linux

package dataplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// server is the directory with the disks of one server.
type server struct{ dir, link string }

// AddServer implements openstacksim.DataPlane.
func (p *Plane) AddServer(id, name string, document func() []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range []string{id, name} {
		if !filepath.IsLocal(s) || filepath.Base(s) != s {
			return fmt.Errorf("%q cannot name the directory of a server", s)
		}
	}
	all := filepath.Join(p.dir, "servers")
	s := &server{dir: filepath.Join(all, id), link: filepath.Join(all, "by-name", name)}
	drive := filepath.Join(s.dir, "config-drive", "openstack", "latest")
	for _, dir := range []string{filepath.Join(s.dir, "sys", "block"), filepath.Join(s.dir, "dev"), filepath.Join(s.dir, "by-id"), drive, filepath.Dir(s.link)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(drive, "meta_data.json"), document(), 0o600); err != nil {
		return err
	}
	p.servers[id] = s
	return point(s.link, filepath.Join("..", id))
}

// RemoveServer implements openstacksim.DataPlane.
func (p *Plane) RemoveServer(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.removeServer(id)
}

func (p *Plane) removeServer(id string) error {
	s := p.servers[id]
	if s == nil {
		return nil
	}
	for volume := range p.disks {
		if err := p.detach(id, volume); err != nil {
			return err
		}
	}
	delete(p.servers, id)
	var err error
	if to, readErr := os.Readlink(s.link); readErr == nil && filepath.Base(to) == id { // another server of that name may have replaced the link
		err = os.Remove(s.link)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *server) block(name string) string { return filepath.Join(s.dir, "sys", "block", name) }

// show adds a disk: first its nodes, and then its entry in sysfs, atomically.
func (s *server) show(name, serial string, l *loop) error {
	if err := point(filepath.Join(s.dir, "dev", name), l.path); err != nil {
		return err
	}
	files := map[string]string{"dev": fmt.Sprintf("%d:%d\n", unix.Major(l.number), unix.Minor(l.number))}
	if serial != "" {
		files["serial"] = serial // the kernel adds no newline
		if err := point(s.byID(serial), l.path); err != nil {
			return err
		}
	}
	sectors, err := l.sectors()
	if err != nil {
		return err
	}
	files["size"] = sectors
	staged := filepath.Join(s.dir, ".new-"+name)
	if err := os.Mkdir(staged, 0o755); err != nil {
		return err
	}
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(staged, file), []byte(text), 0o444); err != nil {
			return errors.Join(err, os.RemoveAll(staged))
		}
	}
	return os.Rename(staged, s.block(name))
}

func (s *server) byID(serial string) string {
	return filepath.Join(s.dir, "by-id", "virtio-"+strings.ReplaceAll(serial, "/", "_"))
}

// hide removes a disk in the opposite order. The disk may not exist yet.
func (s *server) hide(name, serial string) error {
	gone := filepath.Join(s.dir, ".old-"+name)
	if err := os.Rename(s.block(name), gone); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, node := range []string{s.byID(serial), filepath.Join(s.dir, "dev", name)} {
		if err := os.Remove(node); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.RemoveAll(gone)
}

// resize writes the new size of the disk to sysfs, if the disk exists.
func (s *server) resize(name string, l *loop) error {
	if _, err := os.Stat(s.block(name)); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	sectors, err := l.sectors()
	if err != nil {
		return err
	}
	staged := filepath.Join(s.dir, ".size-"+name)
	if err := os.WriteFile(staged, []byte(sectors), 0o444); err != nil {
		return err
	}
	return os.Rename(staged, filepath.Join(s.block(name), "size"))
}

// point creates or replaces a symbolic link atomically.
func point(link, target string) error {
	staged := link + ".new" + strconv.Itoa(os.Getpid())
	if err := os.Symlink(target, staged); err != nil {
		return err
	}
	return os.Rename(staged, link)
}
