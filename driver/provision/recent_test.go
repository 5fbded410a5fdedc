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
		"gone": {change: func(c *cloudtest.Cloud, id volume.ID) {
			time.Sleep(volume.Lag) // until then a 404 may come from before the create
			c.Remove(id)
		}, reads: 1},
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

// So does an expansion: it uses the reading of the call before, and reads the volume if Cinder refuses the request.
func TestAnExpansionSoonAfterAnotherCallReadsAVolumeThatHasChanged(t *testing.T) {
	status := func(to volume.Status) func(*volume.Volume) { return func(v *volume.Volume) { v.Status = to } }
	for name, test := range map[string]struct {
		change  func(*volume.Volume)
		settles func(*volume.Volume)
		gone    bool
		kind    volume.Kind // Unknown means that the volume has the size
		extends int
		reads   int
	}{
		"nothing": {extends: 1},
		"attached": {change: func(v *volume.Volume) {
			v.Status, v.Attachments = volume.InUse, []volume.Attachment{{Server: cloudtest.ServerB}}
		}, extends: 2, reads: 1},
		"expanded by somebody else":       {change: func(v *volume.Volume) { v.Size = volume.GiB(5) }, extends: 1, reads: 1},
		"being expanded by somebody else": {change: status("extending"), settles: func(v *volume.Volume) { v.Status, v.Size = volume.Available, volume.GiB(4) }, extends: 1, reads: 1},
		"in a status that settles":        {change: status("retyping"), settles: status(volume.Available), extends: 2, reads: 1},
		"in an error":                     {change: status("error_extending"), kind: volume.Conflict, extends: 1, reads: 1},
		"being deleted":                   {change: status(volume.Deleting), kind: volume.NotFound, extends: 1, reads: 1},
		"gone":                            {gone: true, kind: volume.NotFound, extends: 1},
	} {
		for call, leave := range fresh {
			t.Run(name+" after a "+call, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					c := cloudtest.New(t)
					s := service(c)
					id := leave(t, c, s)
					if test.change != nil {
						c.Change(id, test.change)
					}
					if test.settles != nil {
						c.Later(id, test.settles)
					}
					if test.gone {
						c.Remove(id)
					}
					reads, extends := c.Count("Volume"), c.Count("Extend")
					v, err := s.Expand(cloudtest.Within(t, 60), id, volume.Range{Required: volume.GiB(4)})
					if reads, extends = c.Count("Volume")-reads, c.Count("Extend")-extends; reads != test.reads || extends != test.extends {
						t.Errorf("want %d reads and %d requests, got %d and %d", test.reads, test.extends, reads, extends)
					}
					if test.kind != volume.Unknown {
						cloudtest.WantKind(t, err, test.kind, false)
					} else if err != nil || v.Size < volume.GiB(4) {
						t.Errorf("%v, %v", v, err)
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
