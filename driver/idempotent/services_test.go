package idempotent_test

import (
	"log/slog"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// counted returns services, the nouns of the duplicates that they report, and their log.
func counted(c *cloudtest.Cloud) (s services, reports *[]string, log *strings.Builder) {
	reports, log = &[]string{}, &strings.Builder{}
	logger, count := slog.New(slog.NewTextHandler(log, nil)), func(noun string) { *reports = append(*reports, noun) }
	return services{
		provision.New(c, c, provision.Options{Owner: cloudtest.TestOwner, Log: logger, CountDuplicate: count}),
		snapshot.New(c, c, c.SnapshotWaiter, c.BackupWaiter, snapshot.Options{Owner: cloudtest.TestOwner, Log: logger, CountDuplicate: count}),
	}, reports, log
}

// services create all kinds of objects.
type services struct {
	volumes   *provision.Service
	snapshots *snapshot.Service
}

func newServices(c *cloudtest.Cloud) services {
	return services{
		provision.New(c, c, provision.Options{Owner: cloudtest.TestOwner}),
		snapshot.New(c, c, c.SnapshotWaiter, c.BackupWaiter, snapshot.Options{Owner: cloudtest.TestOwner}),
	}
}

var (
	volumeSpec   = provision.CreateSpec{Name: "pvc-1", Size: volume.Range{Required: volume.GiB(1)}}
	snapshotSpec = snapshot.Spec{Name: "snapshot-1", Volume: cloudtest.VolumeID(1)}
	backupSpec   = snapshot.Spec{Name: "snapshot-1", Volume: cloudtest.VolumeID(1), Backup: &snapshot.BackupSpec{PerGiB: 20 * time.Second}}
)
