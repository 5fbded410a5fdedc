package snapshot

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

func TestDeleteInEveryStatus(t *testing.T) {
	for _, status := range cloudtest.EverySnapshotStatus {
		t.Run(string(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(cloudtest.OwnSnapshot(1, status))
				err := snapshots(c).Delete(cloudtest.Within(t, 60), cloudtest.SnapshotID(1))
				switch status.SnapshotMeaning().Delete {
				case volume.Proceed:
					if err != nil || len(c.Objects(false)) != 0 {
						t.Errorf("%v; left: %v", err, c.Objects(false))
					}
					return
				case volume.Refuse:
					cloudtest.WantKind(t, err, volume.Conflict, false)
				default:
					cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
				}
				if c.Count("DeleteSnapshot") != 0 {
					t.Error(c.Calls)
				}
			})
		})
	}
}

func TestDelete(t *testing.T) {
	for name, test := range map[string]struct {
		id    volume.SnapshotID
		cloud func(*cloudtest.Cloud)
		kind  volume.Kind // Unknown: no error
		sent  bool
		text  string
	}{
		"that is not there":            {id: cloudtest.SnapshotID(9)},
		"with an id that is no UUID":   {id: "../volumes"},
		"that disappears":              {id: cloudtest.SnapshotID(1), cloud: func(c *cloudtest.Cloud) { c.Fail["DeleteSnapshot"] = volume.Errorf(volume.NotFound, "gone") }},
		"that its backend still needs": {id: cloudtest.SnapshotID(1), cloud: func(c *cloudtest.Cloud) { c.Undeletable(volume.Available); c.Reason = "delete snapshot:busy" }, kind: volume.Conflict, sent: true, text: "busy; most likely"},
		"that fails in its backend": {id: cloudtest.SnapshotID(1), cloud: func(c *cloudtest.Cloud) {
			c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.DeleteSnapshot, Message: "why"})
		}, kind: volume.Failed, sent: true, text: "why"},
		"of a group": {id: cloudtest.SnapshotID(1), cloud: func(c *cloudtest.Cloud) {
			c.Fail["DeleteSnapshot"] = volume.Errorf(volume.Conflict, "must not be part of a group")
		}, kind: volume.Conflict, text: "group snapshot"},
		"that a policy protects": {id: cloudtest.SnapshotID(1), cloud: func(c *cloudtest.Cloud) { c.Fail["DeleteSnapshot"] = volume.Errorf(volume.PermissionDenied, "policy") }, kind: volume.PermissionDenied, text: "policy"},
		"that cannot be read":    {id: cloudtest.SnapshotID(1), cloud: func(c *cloudtest.Cloud) { c.Fail["Snapshot"] = volume.Errorf(volume.Unavailable, "down") }, kind: volume.Unavailable, text: "down"},
		"that someone begins to back up": {id: cloudtest.SnapshotID(1), cloud: func(c *cloudtest.Cloud) {
			c.Hook["DeleteSnapshot"] = func() {
				c.ChangeSnapshot(cloudtest.SnapshotID(1), func(p *volume.Snapshot) { p.Status = "backing-up" })
			}
			c.Fail["DeleteSnapshot"] = volume.Errorf(volume.Conflict, "status must be available")
		}, kind: volume.Busy, text: "backing-up"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, cloudtest.SourceVolume).WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available))
				if test.cloud != nil {
					test.cloud(c)
				}
				err := snapshots(c).Delete(cloudtest.Within(t, 60), test.id)
				if test.kind == volume.Unknown {
					if err != nil {
						t.Error(err)
					}
					return
				}
				cloudtest.WantKind(t, err, test.kind, test.sent)
				if !strings.Contains(err.Error(), test.text) {
					t.Errorf("%q is not in %v", test.text, err)
				}
			})
		})
	}
}
