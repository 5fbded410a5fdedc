package openstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func pageWith(n int, row func(i int) string) string {
	rows := make([]string, n)
	for i := range rows {
		rows[i] = row(i)
	}
	return `{"volumes": [` + strings.Join(rows, ",") + `], "volumes_links": [{"rel": "next", "href": "https://elsewhere.test"}]}`
}

func numbered(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

func TestListsOfACloudThatDoesNotKeepToTheirRules(t *testing.T) {
	t.Parallel()
	same := pageWith(2, func(i int) string { return `{"id": "` + numbered(i) + `", "name": "other"}` })
	for name, tc := range map[string]struct {
		answer string
		read   func(t *testing.T, c *Cloud) error
		text   string
		sent   int
	}{
		"the marker is ignored by a search": {same, func(t *testing.T, c *Cloud) error { _, err := c.VolumesNamed(t.Context(), "n"); return err }, "does not end", 2},
		"the marker is ignored by a list": {same, func(t *testing.T, c *Cloud) error {
			_, _, err := c.Select(t.Context(), volume.Selection{Page: volume.Page{Marker: volume.ID(numbered(1))}})
			return err
		}, "does not end", 1},
		"more of one name than there can be": {
			pageWith(maxNamed+1, func(i int) string { return `{"id": "` + numbered(i) + `", "name": "n"}` }),
			func(t *testing.T, c *Cloud) error { _, err := c.VolumesNamed(t.Context(), "n"); return err }, "more than 16", 1,
		},
		"more types than there can be": {
			`{"volume_types": [` + strings.Repeat(`{},`, 1000) + `{}]}`, func(t *testing.T, c *Cloud) error { _, err := c.Types(t.Context()); return err }, "does not end", 1,
		},
		"an id that is none": {
			pageWith(1, func(int) string { return `{"id": "../../secret", "name": "n"}` }),
			func(t *testing.T, c *Cloud) error { _, err := c.VolumesNamed(t.Context(), "n"); return err }, "not a UUID", 1,
		},
		"more elements than an array may have": {
			pageWith(10_001, func(int) string { return `{}` }), func(t *testing.T, c *Cloud) error { _, _, err := c.Select(t.Context(), volume.Selection{}); return err }, "10000 elements", 1,
		},
		"another volume than the one asked for": {
			`{"volume": {"id": "` + numbered(1) + `"}}`, func(t *testing.T, c *Cloud) error { _, err := c.Volume(t.Context(), volumeID); return err }, numbered(1), 1,
		},
		"a new volume without an id": {`{"volume": {}}`, func(t *testing.T, c *Cloud) error {
			_, err := c.CreateVolume(t.Context(), volume.CreateOptions{Name: "n", Size: volume.GiB(1)})
			if !volume.MayHaveWritten(err) {
				t.Error("the request may have made the volume")
			}
			return err
		}, `id is ""`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			status := 200
			if strings.HasPrefix(name, "a new") {
				status = 202
			}
			c, f := connect(t, answer{status: status, body: tc.answer})
			err := tc.read(t, c)
			if !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v, want one that is retried, with %q", err, tc.text)
			}
			if len(f.seen) != tc.sent {
				t.Errorf("%d requests, want %d", len(f.seen), tc.sent)
			}
		})
	}
}

func TestAPageHasAtMostAsManyVolumesAsWereAskedFor(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 200, body: pageWith(5, func(i int) string { return `{"id": "` + numbered(i) + `"}` })})
	page, more, err := c.Select(t.Context(), volume.Selection{Page: volume.Page{Limit: 3}})
	if err != nil || len(page) != 3 || !more {
		t.Errorf("%d volumes, more %v, %v", len(page), more, err)
	}
}

// One page of a thousand volumes with much metadata, which another cluster in the project may write, has more bytes than a reply may have.
func TestAPageThatIsTooLargeIsReadAsSmallerOnes(t *testing.T) {
	t.Parallel()
	large := answer{status: 200, body: strings.Repeat(" ", 9<<20)}
	c, f := connect(t, large, large, answer{status: 200, body: pageWith(62, func(i int) string { return `{"id": "` + numbered(i) + `"}` })})
	page, more, err := c.Select(t.Context(), volume.Selection{})
	if err != nil || len(page) != 62 || !more || len(f.seen) != 3 {
		t.Errorf("%d volumes, more %v, %d requests, %v", len(page), more, len(f.seen), err)
	}
	c, f = connect(t, large)
	if _, _, err := c.Select(t.Context(), volume.Selection{}); !volume.Is(err, volume.Unavailable) || len(f.seen) != 4 {
		t.Errorf("%d requests, %v", len(f.seen), err)
	}
}

// The ID goes into events and logs, and the cloud chooses it.
func TestARequestIDIsCut(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 404, body: `{"itemNotFound": {"message": "gone"}}`, header: map[string]string{"X-Openstack-Request-Id": "req-" + strings.Repeat("1", 100)}})
	_, err := c.Volume(t.Context(), volumeID)
	var failure *volume.Error
	if !errors.As(err, &failure) || failure.RequestID != "req-"+strings.Repeat("1", 60) {
		t.Errorf("got %v with %q", err, failure.RequestID)
	}
}

func TestSizesThatCannotBeAreNoSizes(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]volume.Size{-1: 0, 0: 0, 1: 1 << 30, 1 << 32: 1 << 62, 1<<32 + 1: 0, 1 << 62: 0} {
		if got := gib(n); got != want {
			t.Errorf("%d GiB: %d, want %d", n, got, want)
		}
	}
}

// An RPC keeps what it finds by name while it waits. A cloud chooses how much it shows of each object.
func TestASearchByNameKeepsOnlyWhatTheDriverUses(t *testing.T) {
	t.Parallel()
	written := map[string]string{contract.MetadataCluster: "blue", contract.MetadataRequest: "token", contract.MetadataSourceBackup: snapshotID, contract.MetadataTemporary: "backup"}
	metadata := maps.Clone(written)
	for i := range 100 {
		metadata[fmt.Sprint("key-", i)] = strings.Repeat("v", 100)
	}
	text, err := json.Marshal(metadata)
	if err != nil {
		t.Fatal(err)
	}
	attachment := fmt.Sprintf(`{"attachment_id": %q, "server_id": %q, "host_name": %q, "device": %[3]q}`, serverID, serverID, strings.Repeat("h", 900))
	object := fmt.Sprintf(`{"id": %q, "name": "n", "metadata": %s, "attachments": [%s%s]}`, volumeID, text, attachment, strings.Repeat(","+attachment, 79))
	list := fmt.Sprintf(`{"volumes": [%[1]s], "snapshots": [%[1]s], "backups": [%[1]s]}`, object)
	c, _ := connect(t, answer{status: 200, body: list})
	volumes, err := c.VolumesNamed(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Attachment{ID: serverID, Volume: volumeID, Server: serverID, Status: volume.AttachmentAttached}
	if n := len(volumes[0].Attachments); n != mostShown || volumes[0].Attachments[0] != want || !volumes[0].AttachedTo(serverID) {
		t.Errorf("want %d attachments like %+v, got %d like %+v", mostShown, want, n, volumes[0].Attachments[0])
	}
	snapshots, err := c.SnapshotsNamed(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	backups, err := c.BackupsNamed(t.Context(), "n")
	if err != nil {
		t.Fatal(err)
	}
	for noun, got := range map[string]map[string]string{"volume": volumes[0].Metadata, "snapshot": snapshots[0].Metadata, "backup": backups[0].Metadata} {
		if diff := cmp.Diff(written, got); diff != "" {
			t.Errorf("the metadata of a %s, -want +got\n%s", noun, diff)
		}
	}
}
