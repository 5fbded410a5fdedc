//go:build linux

package dataplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// image is the file with the bytes of a volume, snapshot or backup. For an empty ID, it is the directory of all.
func (p *Plane) image(id string) string { return filepath.Join(p.dir, "images", id) }

// Make implements openstacksim.DataPlane. A copy lacks data that is still in the cache of a mounted file system, as with a real
// backend.
func (p *Plane) Make(id, from string, gib int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.disks[from]; d != nil {
		// The plane keeps the device open, so the kernel does not write the cache back when the last other user closes it.
		if err := d.loop.file.Sync(); err != nil {
			return fmt.Errorf("copy volume %s: %w", from, err)
		}
	}
	return p.makeImage(id, from, int64(gib)<<30)
}

func (p *Plane) makeImage(id, from string, size int64) (err error) {
	if !filepath.IsLocal(id) || filepath.Base(id) != id {
		return fmt.Errorf("%q is not a volume ID", id)
	}
	if err := os.MkdirAll(p.image(""), 0o700); err != nil {
		return err
	}
	made, err := os.OpenFile(p.image(id), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, made.Close()); err != nil {
			err = errors.Join(err, os.Remove(p.image(id)))
		}
	}()
	if from != "" {
		source, err := os.Open(p.image(from))
		if err != nil {
			return err
		}
		defer source.Close()
		if err := copySparse(made, source); err != nil {
			return fmt.Errorf("copy %s to %s: %w", from, id, err)
		}
	}
	if info, err := made.Stat(); err != nil || info.Size() >= size {
		return err
	}
	return made.Truncate(size)
}

// copySparse copies a file with its holes: by reference if the file system can do it, else extent by extent.
func copySparse(to, from *os.File) error {
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil {
		return nil
	}
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if err := to.Truncate(info.Size()); err != nil {
		return err
	}
	for offset := int64(0); ; {
		begin, err := from.Seek(offset, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return nil // the rest is a hole
		}
		if err != nil {
			return err
		}
		if offset, err = from.Seek(begin, unix.SEEK_HOLE); err != nil {
			return err
		}
		if _, err := from.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := to.Seek(begin, io.SeekStart); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, offset-begin); err != nil {
			return err
		}
	}
}

// shiftedChunk is how much Cinder's backup driver for Ceph copies at a time (backup_ceph_chunk_size).
const shiftedChunk = 128 << 20

// MakeShifted implements openstacksim.DataPlane.
func (p *Plane) MakeShifted(id, backup string, gib int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.makeImage(id, "", int64(gib)<<30); err != nil {
		return err
	}
	from, err := os.Open(p.image(backup))
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(p.image(id), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	chunk := make([]byte, shiftedChunk)
	for n := 0; err == nil; {
		if n, err = io.ReadFull(from, chunk); n > 0 && len(bytes.TrimLeft(chunk[:n], "\x00")) > 0 {
			if _, failed := to.Write(chunk[:n]); failed != nil {
				err = failed
			}
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return errors.Join(err, to.Close())
}

// Write implements openstacksim.DataPlane.
func (p *Plane) Write(volume, backup string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.disks[volume] != nil {
		return fmt.Errorf("volume %s is a disk of a server", volume)
	}
	info, err := os.Stat(p.image(volume))
	if err != nil {
		return err
	}
	if err := os.Remove(p.image(volume)); err != nil {
		return err
	}
	return p.makeImage(volume, backup, info.Size())
}

// Extend implements openstacksim.DataPlane.
func (p *Plane) Extend(volume string, gib int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	size := int64(gib) << 30
	info, err := os.Stat(p.image(volume))
	if err != nil {
		return err
	}
	if info.Size() < size {
		if err := os.Truncate(p.image(volume), size); err != nil {
			return err
		}
	}
	if p.disks[volume] == nil {
		return nil
	}
	return p.later(volume, func() error { return p.resize(volume) })
}

// Remove implements openstacksim.DataPlane.
func (p *Plane) Remove(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.disks[id]; d != nil {
		for server := range d.names {
			if err := p.detach(server, id); err != nil {
				return err
			}
		}
	}
	if err := os.Remove(p.image(id)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
