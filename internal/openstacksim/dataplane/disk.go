//go:build linux

package dataplane

import (
	"errors"
	"fmt"
	"path/filepath"
)

// disk is an attached volume: one loop device for any number of servers.
type disk struct {
	loop  *loop
	names map[string]string // its name, by server
}

// Attach implements openstacksim.DataPlane.
func (p *Plane) Attach(serverID, volume, device string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.servers[serverID]
	if s == nil {
		return fmt.Errorf("server %s is unknown to the data plane", serverID)
	}
	d := p.disks[volume]
	if d == nil {
		l, err := openLoop(p.image(volume))
		if err != nil {
			return err
		}
		d = &disk{loop: l, names: map[string]string{}}
		p.disks[volume] = d
	}
	name := filepath.Base(device)
	d.names[serverID] = name
	err := p.later(volume, func() error {
		if p.disks[volume] != d || d.names[serverID] != name {
			return nil // the volume was detached before the disk appeared
		}
		return s.show(name, p.serial(volume), d.loop)
	})
	if err != nil {
		err = errors.Join(err, p.detach(serverID, volume))
	}
	return err
}

const shortSerial = 20 // VIRTIO_BLK_ID_BYTES: virtio-blk drops the rest

func (p *Plane) serial(volume string) string {
	if p.options.Serial != nil {
		return p.options.Serial(volume)
	}
	return volume[:min(shortSerial, len(volume))]
}

// Detach implements openstacksim.DataPlane. A disk that is still mounted disappears from the server; its device remains until the
// unmount.
func (p *Plane) Detach(serverID, volume string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.detach(serverID, volume)
}

func (p *Plane) detach(serverID, volume string) error {
	d := p.disks[volume]
	if d == nil || d.names[serverID] == "" {
		return nil
	}
	if s := p.servers[serverID]; s != nil {
		if err := s.hide(d.names[serverID], p.serial(volume)); err != nil {
			return err
		}
	}
	delete(d.names, serverID)
	if len(d.names) > 0 {
		return nil
	}
	delete(p.disks, volume)
	return d.loop.Close()
}

// resize gives the disk of an attached volume the size of its file.
func (p *Plane) resize(volume string) error {
	d := p.disks[volume]
	if d == nil {
		return nil
	}
	if err := d.loop.grow(); err != nil {
		return fmt.Errorf("grow the disk of volume %s: %w", volume, err)
	}
	var err error
	for id, name := range d.names {
		err = errors.Join(err, p.servers[id].resize(name, d.loop))
	}
	return err
}
