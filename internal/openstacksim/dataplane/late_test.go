//go:build linux

package dataplane

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestADiskAppearsAfterTheDelayUnlessItWentBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlane(t, Options{Delay: time.Minute})
		disks := filepath.Join(p.dir, "servers/by-name/a/sys/block")
		do(t, p.Make(one, "", 1))
		do(t, p.Make(two, "", 1))
		do(t, p.Attach(nodeA, one, "/dev/vdb"))
		do(t, p.Attach(nodeA, two, "/dev/vdc"))
		wantFiles(t, disks)
		do(t, p.Detach(nodeA, two))
		pass := func() { time.Sleep(time.Minute); synctest.Wait() }
		pass()
		wantFiles(t, disks, "vdb")
		do(t, p.Extend(one, 2))
		size := func() string { return read(t, disks, "vdb", "size") }
		if got := size(); got != "2097152\n" {
			t.Errorf("it grew at once: %q", got)
		}
		pass()
		if got := size(); got != "4194304\n" {
			t.Errorf("it did not grow: %q", got)
		}
	})
}
