package driver

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/openstack/status"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// waiting is a cloud with those who wait for what happens in it.
type waiting struct {
	cloud     volume.Cloud
	volumes   volume.Waiter
	snapshots volume.SnapshotWaiter
	backups   volume.SnapshotWaiter
}

// wait starts the hubs of a cloud, which run until work ends.
func wait(work context.Context, background *errgroup.Group, adapter *openstack.Cloud, pollEach bool) waiting {
	volumes, snapshots := status.NewHub(adapter), status.NewSnapshotHub(adapter)
	backups, servers := status.NewBackupHub(adapter), status.NewServerHub(adapter)
	if pollEach {
		return waiting{adapter, status.EachOf(volumes), status.EachOf(snapshots), status.EachOf(backups)}
	}
	for _, run := range []func(context.Context) error{volumes.Run, snapshots.Run, backups.Run, servers.Run} {
		background.Go(func() error { return ended(run(work)) })
	}
	return waiting{openstack.Shared{Cloud: adapter, Hub: volumes, Servers: servers}, volumes, snapshots, backups}
}
