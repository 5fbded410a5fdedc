package volume

import (
	"log/slog"
	"strings"
	"time"
)

// counted are services that count what they report.
func counted(c *fakeCloud) (s services, reports *[]string, log *strings.Builder) {
	reports, log = &[]string{}, &strings.Builder{}
	logger, count := slog.New(slog.NewTextHandler(log, nil)), func(noun string) { *reports = append(*reports, noun) }
	return services{
		NewVolumes(c, c, Options{Owner: testOwner, Log: logger, CountDuplicate: count}),
		NewSnapshots(c, c, snapshotWaiter{c}, backupWaiter{c}, SnapshotServiceOptions{Owner: testOwner, Log: logger, CountDuplicate: count}),
	}, reports, log
}

// services create all kinds of objects.
type services struct {
	volumes   *Volumes
	snapshots *Snapshots
}

func both(c *fakeCloud) services {
	return services{
		NewVolumes(c, c, Options{Owner: testOwner}),
		NewSnapshots(c, c, snapshotWaiter{c}, backupWaiter{c}, SnapshotServiceOptions{Owner: testOwner}),
	}
}

var (
	volumeSpec   = CreateSpec{Name: "pvc-1", Size: Range{Required: GiB(1)}}
	snapshotSpec = SnapshotSpec{Name: "snapshot-1", Volume: id(1)}
	backupSpec   = SnapshotSpec{Name: "snapshot-1", Volume: id(1), Backup: &BackupSpec{PerGiB: 20 * time.Second}}
)
