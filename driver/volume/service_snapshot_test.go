package volume

func snapshots(c *fakeCloud) *Snapshots {
	return NewSnapshots(c, c, snapshotWaiter{c}, backupWaiter{c}, SnapshotServiceOptions{Owner: testOwner})
}
