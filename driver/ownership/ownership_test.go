package ownership

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// A restore replaces the metadata by that of the volume that was backed up, so the description decides until the driver has written its own.
func TestTheMarkDecidesUnlessARestoreReplacedIt(t *testing.T) {
	us, them := idempotent.Owner{Driver: "d", Cluster: "us"}, idempotent.Owner{Driver: "d", Cluster: "them"}
	restoredBy := func(o idempotent.Owner) string {
		return contract.DescriptionOfRestored(o.Token("pvc-1"), time.Unix(0, 0))
	}
	for name, test := range map[string]struct {
		description string
		metadata    map[string]string
		want        owner
	}{
		"no mark":                            {want: unknown},
		"our mark":                           {metadata: us.Metadata("pvc-1", nil), want: mine},
		"their mark":                         {metadata: them.Metadata("pvc-1", nil), want: theirs},
		"a mark by hand":                     {metadata: map[string]string{contract.MetadataCluster: "us"}, want: mine},
		"our restore of their backup":        {restoredBy(us), them.Metadata("pvc-old", nil), mine},
		"our restore of an unmarked backup":  {restoredBy(us), nil, mine},
		"their restore of our backup":        {restoredBy(them), us.Metadata("pvc-old", nil), theirs},
		"our complete restore":               {restoredBy(us), us.Metadata("pvc-1", nil), mine},
		"their complete restore":             {restoredBy(them), them.Metadata("pvc-1", nil), theirs},
		"their complete restore, taken over": {restoredBy(them), map[string]string{contract.MetadataCluster: "us", contract.MetadataRequest: them.Token("pvc-1")}, mine},
	} {
		t.Run(name, func(t *testing.T) {
			got := Rule{Owner: us}.ofVolume(volume.Volume{Name: "pvc-1", Description: test.description, Metadata: test.metadata})
			if got.owner != test.want {
				t.Errorf("want %d, got %+v", test.want, got)
			}
		})
	}
}

func TestTheCommandThatTakesAnObjectOverIsOneShellCommand(t *testing.T) {
	g := guard{rule: Rule{Owner: idempotent.Owner{Cluster: "it's; rm -rf $HOME"}}}
	if got, want := g.takeOver(volumeNoun, "ID"), `openstack volume set --property 'cinder.csi.openstack.org/cluster=it'\''s; rm -rf $HOME' ID`; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
	g.rule.Owner.Cluster = "prod-1"
	if got, want := g.takeOver(backupNoun, "ID"), "openstack --os-volume-api-version 3.43 volume backup set --property cinder.csi.openstack.org/cluster=prod-1 ID"; got != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

const them volume.ServerID = "00000000-0000-4000-8000-ffffffffffff"

type servers struct {
	volume.Cloud
	asked, listed *int
	hidden        []volume.Attachment // what Cinder does not show with the volume
}

func (s servers) Server(_ context.Context, id volume.ServerID) (volume.Server, error) {
	*s.asked++
	return volume.Server{ID: id, Metadata: map[string]string{"cluster": map[bool]string{true: "us", false: "them"}[id != them]}}, nil
}

func (s servers) VolumeAttachments(context.Context, volume.ID) ([]volume.Attachment, error) {
	*s.listed++
	return s.hidden, nil
}

// The cluster that uses an unmarked volume can detach it, however many of its servers have it. Cinder shows only complete attachments with the volume.
func TestTheServersOfAnUnmarkedVolumeDecide(t *testing.T) {
	us := idempotent.Owner{Driver: "d", Cluster: "us"}
	for name, test := range map[string]struct {
		own, hidden int  // servers of ours
		other       bool // theirs has it too
		volume      volume.Volume
		listed      int
		want        owner
	}{
		"one of ours":                               {own: 1, want: unknown},
		"ours and theirs":                           {own: 63, other: true, want: theirs},
		"more than are asked":                       {own: mostServers + 1, want: unknown},
		"theirs among so many":                      {own: mostServers + 1, other: true, want: unknown},
		"none is shown":                             {hidden: 1, listed: 1, want: unknown},
		"none is shown, and theirs":                 {hidden: 1, other: true, listed: 1, want: theirs},
		"multiattach, ours":                         {own: 1, hidden: 1, volume: volume.Volume{Multiattach: true}, listed: 1, want: unknown},
		"multiattach, ours is shown and not theirs": {own: 1, hidden: 1, other: true, volume: volume.Volume{Multiattach: true}, listed: 1, want: theirs},
		"multiattach, none is shown, and theirs":    {hidden: 1, other: true, volume: volume.Volume{Multiattach: true}, listed: 1, want: theirs},
		"multiattach, available":                    {volume: volume.Volume{Multiattach: true, Status: volume.Available}, want: unknown},
		"multiattach, with our mark":                {own: 1, volume: volume.Volume{Multiattach: true, Metadata: us.Metadata("pvc-1", nil)}, want: mine},
	} {
		attachments := func(own int, other bool) (all []volume.Attachment) {
			for i := range own {
				all = append(all, volume.Attachment{Server: volume.ServerID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i+1))})
			}
			if other {
				all = append(all, volume.Attachment{Server: them})
			}
			return all
		}
		asked, listed, v := 0, 0, test.volume
		v.Attachments = attachments(test.own, test.other && test.hidden == 0)
		g := guard{servers{asked: &asked, listed: &listed, hidden: attachments(test.hidden, test.other)}, Rule{Owner: us, Servers: volume.ServerMetadata{"cluster": "us"}}}
		if got, err := g.volume(t.Context(), v); err != nil || got.owner != test.want || asked > mostServers || listed != test.listed {
			t.Errorf("%s: want %d, got %+v, %v after %d servers and %d lists", name, test.want, got, err, asked, listed)
		}
	}
}
