package openstacksim_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
)

const putID, putSnapshotID = "00000000-0000-4000-8000-000000000001", "50000000-0000-4000-8000-000000000001"

// What a test puts into the databases is what the services show, and what the next PutVolume changes.
func TestAVolumeThatIsPutIsTheStateThatIsRead(t *testing.T) {
	config := openstacksim.Default()
	sim, server, other := openstacksim.New(config), config.Servers[0].ID, config.Servers[1].ID
	want := openstacksim.VolumeState{
		ID: putID, Name: "pvc-1", Status: "in-use", Zone: "az2", Type: "fast", Description: "a disk", Size: 3, Multiattach: true,
		Metadata: map[string]string{"team": "storage"}, Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Attachments: []openstacksim.AttachmentState{{ID: "a", Server: server, Status: "attached", Host: "kvm-7"}, {ID: "b", Server: other, Status: "reserved"}},
		Disks:       []string{server},
	}
	put := func() {
		t.Helper()
		if err := sim.PutVolume(want); err != nil {
			t.Fatal(err)
		}
		got, _ := sim.VolumeState(putID)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error("-want +got\n", diff)
		}
	}
	put()
	demo := login(t, sim, "demo", "demo")
	if shown := demo.do("GET", "/volume/volumes/"+putID, "", ""); shown.at("volume", "status") != "in-use" || shown.at("volume", "attachments", 0, "server_id") != server {
		t.Errorf("Cinder shows %v", shown.body)
	}
	if listed := demo.do("GET", "/compute/servers/"+server+"/os-volume_attachments", "", ""); listed.at("volumeAttachments", 0, "volumeId") != putID {
		t.Errorf("Nova lists %v", listed.body)
	}
	want.Status, want.Attachments, want.Disks = "available", nil, nil
	put()
	want.Type = "no such type"
	if sim.PutVolume(want) == nil {
		t.Error("a volume of a type that does not exist")
	}
}

func TestASnapshotThatIsPutIsTheStateThatIsRead(t *testing.T) {
	sim := openstacksim.New(openstacksim.Default())
	state := openstacksim.SnapshotState{
		ID: putSnapshotID, Name: "snapshot-1", Status: "available", Volume: putID, Size: 3, Metadata: map[string]string{"a": "1"},
		Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	if sim.PutSnapshot(state) == nil {
		t.Error("a snapshot of a volume that does not exist")
	}
	if err := sim.PutVolume(openstacksim.VolumeState{ID: putID, Status: "available", Size: 3}); err != nil {
		t.Fatal(err)
	}
	backup := state
	backup.ID, backup.Backup, backup.Snapshot, backup.Reason, backup.Zone, backup.Objects, backup.Data = putID, true, putSnapshotID, "the store is full", "az1", 63, state.Created
	for _, want := range []openstacksim.SnapshotState{state, backup} {
		for _, status := range []string{"available", "error"} {
			want.Status = status
			if err := sim.PutSnapshot(want); err != nil {
				t.Fatal(err)
			}
			got, _ := sim.SnapshotState(want.ID)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("-want +got\n", diff)
			}
		}
	}
	demo := login(t, sim, "demo", "demo")
	if shown := demo.do("GET", "/volume/snapshots/"+putSnapshotID, "", ""); shown.at("snapshot", "volume_id") != putID {
		t.Errorf("Cinder shows %v", shown.body)
	}
}
