package driver

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/telemetry"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// startHubs starts the status hubs of a cloud, which run until work ends.
func (p *process) startHubs(work context.Context, adapter *openstack.Cloud, name string, hubs *telemetry.Hubs) volume.WaitingCloud {
	volumes := status.NewHub(adapter).WithMeter(hubs.Of(name, "volume"))
	snapshots := status.NewSnapshotHub(adapter).WithMeter(hubs.Of(name, "snapshot"))
	backups := status.NewBackupHub(adapter).WithMeter(hubs.Of(name, "backup"))
	servers := status.NewServerHub(adapter).WithMeter(hubs.Of(name, "server"))
	for _, run := range []func(context.Context) error{volumes.Run, snapshots.Run, backups.Run, servers.Run} {
		p.beside(work, "a status hub of cloud "+name, func() error { return ended(run(work)) })
	}
	return volume.WaitingCloud{Cloud: openstack.Shared{Cloud: adapter, Volumes: volumes, Servers: servers}, Volumes: volumes, Snapshots: snapshots, Backups: backups}
}
