package driver_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// step is one thing that a cluster asks of its driver.
type step struct {
	name string
	do   func(ctx context.Context, l *life) error
}

// life is what the steps of a volume's life leave for one another.
type life struct {
	*instance
	sim                             *openstacksim.Sim
	volume, shared, snapshot, saved string // ids; saved is a backup's
}

func (l *life) create(ctx context.Context, into *string, name string, change ...func(*csi.CreateVolumeRequest)) error {
	v, err := l.CreateVolume(ctx, claim(name, change...))
	*into = v.GetVolume().GetVolumeId()
	return err
}

func (l *life) attach(ctx context.Context, id, node string, c *csi.VolumeCapability) error {
	return outcome(l.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: node, VolumeCapability: c}))
}

func (l *life) remove(ctx context.Context, id string) error {
	return outcome(l.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}))
}

func (l *life) createBackup(ctx context.Context, name string) error {
	for try := 1; ; try++ {
		b, err := l.CreateSnapshot(ctx, archive(name, l.volume))
		if try < 10 && err != nil && strings.Contains(err.Error(), "keeps waiting on the next call") {
			continue
		}
		l.saved = b.GetSnapshot().GetSnapshotId()
		return err
	}
}

// restore makes a volume from the backup, and deletes it.
func (l *life) restore(ctx context.Context, name string) error {
	var restored string
	if err := l.create(ctx, &restored, name, fromSnapshot(l.saved), func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 }); err != nil {
		return err
	}
	return l.remove(ctx, restored)
}

func (l *life) deleteSaved(ctx context.Context) error {
	return outcome(l.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: l.saved}))
}

// everyRequest are steps that between them make the controller send every kind of request it can send.
var everyRequest = []step{
	{"create", func(ctx context.Context, l *life) error { return l.create(ctx, &l.volume, "pvc-1") }},
	{"read", func(ctx context.Context, l *life) error {
		return outcome(l.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: l.volume}))
	}},
	{"report a missing server", func(ctx context.Context, l *life) error {
		err := l.attach(ctx, l.volume, l.volume, writer)
		if status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), `server "`+l.volume+`" does not exist`) {
			return fmt.Errorf("it was not reported: %w", err)
		}
		return nil
	}},
	{"attach", func(ctx context.Context, l *life) error {
		az1, _ := servers()
		return l.attach(ctx, l.volume, az1, writer)
	}},
	{"list", func(ctx context.Context, l *life) error {
		return outcome(l.ListVolumes(ctx, &csi.ListVolumesRequest{}))
	}},
	{"set and remove metadata", func(ctx context.Context, l *life) error {
		for _, value := range []string{"a", ""} {
			if _, err := l.ControllerModifyVolume(ctx, changed(l.volume, map[string]string{"metadata.team": value})); err != nil {
				return err
			}
		}
		return nil
	}},
	{"expand", func(ctx context.Context, l *life) error {
		return outcome(l.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: l.volume, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}, VolumeCapability: writer}))
	}},
	{"snapshot", func(ctx context.Context, l *life) error {
		p, err := l.CreateSnapshot(ctx, snapshotRequest("snapshot-1", l.volume))
		l.snapshot = p.GetSnapshot().GetSnapshotId()
		return err
	}},
	{"list snapshots", func(ctx context.Context, l *life) error {
		time.Sleep(time.Minute) // virtual: it is ready
		return outcome(l.ListSnapshots(ctx, &csi.ListSnapshotsRequest{}))
	}},
	{"read a snapshot", func(ctx context.Context, l *life) error {
		got, err := l.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: l.snapshot})
		if err == nil && len(got.GetEntries()) != 1 {
			err = fmt.Errorf("got %v", got)
		}
		return err
	}},
	{"restore", func(ctx context.Context, l *life) error {
		var restored string
		if err := l.create(ctx, &restored, "pvc-2", fromSnapshot(l.snapshot), func(r *csi.CreateVolumeRequest) { r.CapacityRange.RequiredBytes = 2 << 30 }); err != nil {
			return err
		}
		return l.remove(ctx, restored)
	}},
	{"delete a snapshot", func(ctx context.Context, l *life) error {
		return outcome(l.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: l.snapshot}))
	}},
	{"detach", func(ctx context.Context, l *life) error {
		return outcome(l.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: l.volume}))
	}},
	{"back up", func(ctx context.Context, l *life) error { return l.createBackup(ctx, "backup-1") }},
	{"restore a backup", func(ctx context.Context, l *life) error { return l.restore(ctx, "pvc-3") }},
	{"delete a backup", func(ctx context.Context, l *life) error { return l.deleteSaved(ctx) }},
	{"back up in Ceph", func(ctx context.Context, l *life) error {
		l.sim.SetCephBackups(true)
		return l.createBackup(ctx, "backup-2")
	}},
	{"restore a backup in Ceph", func(ctx context.Context, l *life) error { return l.restore(ctx, "pvc-8") }},
	{"delete a backup in Ceph", func(ctx context.Context, l *life) error { return l.deleteSaved(ctx) }},
	{"find a zone by its label", func(ctx context.Context, l *life) error {
		var elsewhere string
		if err := l.create(ctx, &elsewhere, "pvc-6", func(r *csi.CreateVolumeRequest) {
			r.AccessibilityRequirements = &csi.TopologyRequirement{Preferred: []*csi.Topology{{Segments: map[string]string{"topology.cinder.csi.openstack.org/zone": "zone-3"}}}}
		}); err != nil {
			return err
		}
		return l.remove(ctx, elsewhere)
	}},
	{"share", func(ctx context.Context, l *life) error {
		err := l.create(ctx, &l.shared, "pvc-4", multiattach)
		az1, az2 := servers()
		for _, node := range []string{az1, az2} {
			if err == nil {
				err = l.attach(ctx, l.shared, node, shared)
			}
		}
		return err
	}},
	{"share no more", func(ctx context.Context, l *life) error {
		az1, az2 := servers()
		for _, node := range []string{az1, az2} {
			if _, err := l.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: l.shared, NodeId: node}); err != nil {
				return err
			}
		}
		return nil
	}},
	{"clear a stale attachment", func(ctx context.Context, l *life) error {
		var id string
		if err := l.create(ctx, &id, "pvc-7"); err != nil {
			return err
		}
		_, az2 := servers()
		l.sim.AddAttachment(id, az2, "reserved") // one that has reached a host, no application credential may delete
		if _, err := l.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: az2}); err != nil {
			return err
		}
		return l.remove(ctx, id)
	}},
	{"report the capacity", func(ctx context.Context, l *life) error {
		return outcome(l.GetCapacity(ctx, &csi.GetCapacityRequest{}))
	}},
	{"say why a create failed", func(ctx context.Context, l *life) error {
		l.sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Times: 1})
		if _, err := l.CreateVolume(ctx, claim("pvc-5")); err == nil || !strings.Contains(err.Error(), "weighted backend") {
			return fmt.Errorf("the reason is missing: %w", err)
		}
		return nil
	}},
	{"delete", func(ctx context.Context, l *life) error {
		return errors.Join(l.remove(ctx, l.shared), l.remove(ctx, l.volume))
	}},
}

// lead lives the whole life with those access rules and gives the first error, with its step.
func lead(t *testing.T, rules []openstack.AccessRule) (failed, log string, err error) {
	t.Helper()
	config := openstacksim.Default()
	config.VolumeZones = append(config.VolumeZones, "zone 3")
	sim := openstacksim.New(config)
	sim.SetAllLatency(7 * time.Second)
	sim.SetLatency(openstacksim.CreateSnapshot, 30*time.Second) // longer than a call stays
	sim.SetLatency(openstacksim.CreateBackup, 30*time.Second)
	restricted := openstacksim.ApplicationCredential{Name: "restricted", User: "demo", Project: "demo", Roles: []string{"member"}}
	for _, r := range rules {
		restricted.AccessRules = append(restricted.AccessRules, openstacksim.AccessRule{Service: r.Service, Method: r.Method, Path: r.Path})
	}
	l := &life{instance: start(t, confOf(sim.AddApplicationCredential(restricted)), memnet.Transport(sim.Handler()), "--with-capacity"), sim: sim}
	for _, s := range everyRequest {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		err := s.do(ctx, l)
		cancel()
		if err != nil {
			return s.name, l.Log.String(), err
		}
	}
	return "", "", nil
}

func TestTheAccessRulesAreEnoughForAWholeLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if step, _, err := lead(t, openstack.AccessRules()); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	})
}

// Every rule is needed, and a missing rule is reported: by the error, or by the log if the error is about a consequence.
func TestWithoutAnAccessRuleAStepFailsAndNamesIt(t *testing.T) {
	testenv.NotShort(t)
	for i, rule := range openstack.AccessRules() {
		story(t, strings.NewReplacer("/", "_", "*", "x").Replace(rule.String()), func(t *testing.T) {
			step, log, err := lead(t, slices.Delete(openstack.AccessRules(), i, i+1))
			switch {
			case err == nil:
				t.Errorf("nothing in this life needs %s: add a step to everyRequest that does", rule)
			case !strings.Contains(err.Error()+log, rule.String()):
				t.Errorf("%s fails and does not name %s: %v", step, rule, err)
			default:
				t.Logf("%s: %v", step, err)
			}
		})
	}
}
