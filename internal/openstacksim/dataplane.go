package openstacksim

import "errors"

// DataPlane is the bytes that volumes, snapshots and backups hold, and the disks that servers see. A cloud without one keeps books
// alone. Its methods are called one at a time while the cloud is locked, so they must not ask the cloud anything; their errors end
// the operation as a backend's errors do. Ids are never used twice.
type DataPlane interface {
	// Make makes the bytes of a volume, snapshot or backup: those of the object from, as they are now, and zeros up to the size.
	Make(id, from string, gib int) error
	// Extend makes a volume larger, and the disks that show it.
	Extend(volume string, gib int) error
	// Remove takes the bytes away, and disks that still show them. What is not there is removed.
	Remove(id string) error

	// AddServer makes a server's view of its disks; document makes its meta_data.json, at the cost of random numbers.
	AddServer(id, name string, document func() []byte) error
	// RemoveServer takes the view away, with every disk in it.
	RemoveServer(id string) error
	// Attach shows a volume to a server as the disk that Nova calls device (/dev/vdb).
	Attach(server, volume, device string) error
	// Detach takes the disk out of the server. What is not there is detached.
	Detach(server, volume string) error
}

// UseDataPlane gives the cloud a data plane. It is for a new cloud: volumes that exist already have no bytes.
func (s *Sim) UseDataPlane(d DataPlane) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.volumes) > 0 {
		return errors.New("the cloud has volumes already, which the data plane does not know")
	}
	s.data = d
	for _, id := range sortedKeys(s.servers) {
		v := s.servers[id]
		if err := d.AddServer(id, v.Name, func() []byte { return encode(s.metadataDocument(v)) }); err != nil {
			return err
		}
	}
	return nil
}

// books is the data plane of a cloud without one.
type books struct{}

func (books) Make(string, string, int) error                { return nil }
func (books) Extend(string, int) error                      { return nil }
func (books) Remove(string) error                           { return nil }
func (books) AddServer(string, string, func() []byte) error { return nil }
func (books) RemoveServer(string) error                     { return nil }
func (books) Attach(string, string, string) error           { return nil }
func (books) Detach(string, string) error                   { return nil }

// try does an operation's part of the data plane, unless the operation is to fail anyway, and makes the operation fail if that does.
func (f Fault) try(do func() error) Fault {
	if f.fails() {
		return f
	}
	if err := do(); err != nil {
		f.fired, f.Slow, f.Message = true, false, err.Error()
	}
	return f
}
