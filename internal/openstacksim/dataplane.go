package openstacksim

import "errors"

// DataPlane holds the bytes of volumes, snapshots and backups, and the disks of servers. A cloud without one keeps only the state
// of its objects. The cloud calls one method at a time and holds its lock, so a method must not call the cloud. An error fails
// the operation, as an error of a backend does. The cloud never uses an ID twice.
type DataPlane interface {
	// Make creates the bytes of a volume, snapshot or backup: those of the object from, as they are now, and zeros up to the
	// size.
	Make(id, from string, gib int) error
	// MakeShifted is Make for a volume from a backup, with the defect of Cinder 26 and Ceph. It leaves out each 128 MiB of zeros, and does not
	// move on.
	MakeShifted(id, backup string, gib int) error
	// Write replaces the bytes of a volume that is not attached by those of a backup, which is not larger.
	Write(volume, backup string) error
	// Extend enlarges a volume and its disks.
	Extend(volume string, gib int) error
	// Remove deletes the bytes and the disks that still show them. It is no error if they do not exist.
	Remove(id string) error

	// AddServer creates the directory with the disks of a server. document returns its meta_data.json, and uses random numbers.
	AddServer(id, name string, document func() []byte) error
	// RemoveServer removes that directory with every disk in it.
	RemoveServer(id string) error
	// Attach adds a volume to a server as the disk that Nova calls device (/dev/vdb).
	Attach(server, volume, device string) error
	// Detach removes the disk from the server. It is no error if the disk does not exist.
	Detach(server, volume string) error
}

// UseDataPlane sets the data plane of a new cloud: volumes that exist already have no bytes.
func (s *Sim) UseDataPlane(d DataPlane) error {
	defer s.lock()()
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

type noDataPlane struct{}

func (noDataPlane) Make(string, string, int) error                { return nil }
func (noDataPlane) MakeShifted(string, string, int) error         { return nil }
func (noDataPlane) Write(string, string) error                    { return nil }
func (noDataPlane) Extend(string, int) error                      { return nil }
func (noDataPlane) Remove(string) error                           { return nil }
func (noDataPlane) AddServer(string, string, func() []byte) error { return nil }
func (noDataPlane) RemoveServer(string) error                     { return nil }
func (noDataPlane) Attach(string, string, string) error           { return nil }
func (noDataPlane) Detach(string, string) error                   { return nil }

// try runs the data plane part of an operation, unless the operation fails anyway. If that part fails, so does the operation.
func (f Fault) try(do func() error) Fault {
	if f.fails() {
		return f
	}
	if err := do(); err != nil {
		f.fired, f.Slow, f.Message = true, false, err.Error()
	}
	return f
}
