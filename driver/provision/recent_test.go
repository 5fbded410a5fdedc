package provision

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// fresh are the calls that leave a reading of an available volume for the next call.
var fresh = map[string]func(t *testing.T, c *cloudtest.Cloud, s *Service) volume.ID{
	"create": func(t *testing.T, _ *cloudtest.Cloud, s *Service) volume.ID {
		v, err := s.Create(cloudtest.Within(t, 60), gib)
		if err != nil {
			t.Fatal(err)
		}
		return v.ID
	},
	"expand": func(t *testing.T, c *cloudtest.Cloud, s *Service) volume.ID {
		c.Put(cloudtest.OwnVolume(1, volume.Available))
		v, err := s.Expand(cloudtest.Within(t, 60), cloudtest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
		if err != nil {
			t.Fatal(err)
		}
		return v.ID
	},
}

// A delete uses the reading of the call before. Somebody else changed the volume in between, so Cinder refuses the delete. The driver reads
// the volume and does what it would have done without the reading.
func TestADeleteSoonAfterAnotherCallReadsAVolumeThatHasChanged(t *testing.T) {
	attached := func(c *cloudtest.Cloud, id volume.ID) {
		c.Change(id, func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerB}}
		})
	}
	for name, test := range map[string]struct {
		change func(c *cloudtest.Cloud, id volume.ID)
		kind   volume.Kind // Unknown means that the volume is gone
		text   string
		reads  int // before the last delete; the explanation of a refusal reads once more
	}{
		"nothing":  {change: func(*cloudtest.Cloud, volume.ID) {}},
		"attached": {change: attached, kind: volume.Conflict, text: "attached to server " + string(cloudtest.ServerB) + "; detach it first", reads: 1},
		"given up by its host soon": {change: func(c *cloudtest.Cloud, id volume.ID) {
			attached(c, id)
			c.Change(id, func(v *volume.Volume) { v.Status = volume.Detaching })
			c.Later(id, func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
		}, reads: 1},
		"a snapshot": {change: func(c *cloudtest.Cloud, id volume.ID) {
			p := cloudtest.OwnSnapshot(1, volume.Available)
			p.Volume = id
			c.WithSnapshots(p)
		}, kind: volume.Conflict, text: "it has snapshots", reads: 2},
		"in an error": {change: func(c *cloudtest.Cloud, id volume.ID) {
			c.Change(id, func(v *volume.Volume) { v.Status = "error_backing-up" })
		}, kind: volume.Conflict, text: "error_backing-up", reads: 1},
		"deleted by somebody else": {change: func(c *cloudtest.Cloud, id volume.ID) {
			c.Change(id, func(v *volume.Volume) { v.Status = volume.Deleting })
			time.AfterFunc(time.Second, func() { c.Remove(id) })
		}, reads: 1},
		"gone": {change: func(c *cloudtest.Cloud, id volume.ID) { c.Remove(id) }},
	} {
		for call, leave := range fresh {
			t.Run(name+" after a "+call, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := cloudtest.New(t)
					s := service(c)
					id := leave(t, c, s)
					test.change(c, id)
					before := c.Count("Volume")
					err := s.Delete(cloudtest.Within(t, 60), id)
					if reads := c.Count("Volume") - before; reads != test.reads {
						t.Errorf("want %d reads of the volume, got %d", test.reads, reads)
					}
					if test.kind == volume.Unknown {
						if err != nil || len(c.Volumes()) != 0 {
							t.Errorf("%v; left %v", err, c.Volumes())
						}
						return
					}
					if cloudtest.WantKind(t, err, test.kind, false); !strings.Contains(err.Error(), test.text) {
						t.Errorf("%q is not in %v", test.text, err)
					}
				})
			})
		}
	}
}

// Cinder may have begun the delete although its answer was lost. The driver must not send it again before it has read the volume.
func TestADeleteWhoseAnswerIsLostIsNotSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := service(c)
		id := fresh["create"](t, c, s)
		c.Sim.SetFault(openstacksim.Fault{Method: "DELETE", Path: "/volume/v3/*/volumes/*", Status: 504, After: true, Times: 1})
		cloudtest.WantKind(t, s.Delete(cloudtest.Within(t, 60), id), volume.Unavailable, true)
		if err := s.Delete(cloudtest.Within(t, 60), id); err != nil || c.Count("DeleteVolume") != 1 || len(c.Volumes()) != 0 {
			t.Errorf("%v after %v", err, c.Calls)
		}
	})
}
