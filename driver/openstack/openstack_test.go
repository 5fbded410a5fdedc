package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

// New returns the adapter of a cloud that the driver is logged in to.
func New(c *cloud.Cloud, log *slog.Logger) *Cloud { return NewCurrent(cloud.Fixed(c), log) }

const (
	volumeID   = "a25935a7-cac9-4408-97f5-63c6b140c4dd"
	serverID   = "3c902e53-0961-48eb-8b0c-2de7acd39276"
	snapshotID = "5be5451a-8703-4f8c-970e-75bfb9c782e3"
	requestIDs = "req-5f4a7a0b-2964-4014-9a20-4230d7af5dd0"
)

// answer is what the fake cloud says to one request.
type answer struct {
	status int
	body   string
	header map[string]string
	err    error         // instead of an answer
	after  time.Duration // before answering
}

// fake is Keystone, and a Cinder and Nova that answer by script; it records what it was asked.
type fake struct {
	mu     sync.Mutex
	script []answer // the last one is repeated
	seen   []seen
	logins int
	login  answer // when renewing; zero means that it works
}

type seen struct {
	Method, Path, Query, Microversion, Body string
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/auth/tokens") {
		return f.keystone(r)
	}
	f.mu.Lock()
	body := ""
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
	}
	version := r.Header.Get("OpenStack-API-Version")
	_, version, _ = strings.Cut(version, " ")
	f.seen = append(f.seen, seen{r.Method, r.URL.Path, r.URL.RawQuery, version, body})
	a := f.script[0]
	if len(f.script) > 1 {
		f.script = f.script[1:]
	}
	f.mu.Unlock()
	if a.after > 0 {
		select {
		case <-time.After(a.after):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.response(), nil
}

func (a answer) response() *http.Response {
	w := httptest.NewRecorder()
	w.Header().Set("X-Openstack-Request-Id", requestIDs)
	for k, v := range a.header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
	return w.Result()
}

func (f *fake) keystone(*http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.logins++
	if f.logins > 1 && (f.login.status != 0 || f.login.err != nil) {
		if f.login.err != nil {
			return nil, f.login.err
		}
		return f.login.response(), nil
	}
	return answer{
		status: http.StatusCreated, header: map[string]string{"X-Subject-Token": "t"},
		body: `{"token": {"project": {"id": "p"}, "catalog": [
			{"type": "volumev3", "endpoints": [{"interface": "public", "region": "R", "url": "http://cinder/v3/p"}]},
			{"type": "compute", "endpoints": [{"interface": "public", "region": "R", "url": "http://nova/v2.1"}]}]}}`,
	}.response(), nil
}

// connect gives the adapter of a cloud that answers by script.
func connect(t testing.TB, script ...answer) (*Cloud, *fake) {
	t.Helper()
	f := &fake{script: script}
	s := cloud.Settings{Name: "fake", AuthURL: "http://login:gate@keystone/v3", UserID: "u", Password: "p", ProjectID: "p"}
	c, err := cloud.Connect(t.Context(), s, cloud.Options{Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	return New(c, slog.New(slog.DiscardHandler)), f
}

// operation is one method of the port, made with good arguments.
type operation struct {
	name   string
	write  bool
	answer answer
	run    func(context.Context, *Cloud) error
}

var operations = slices.Concat([]operation{
	{"create", true, answer{status: 202, body: `{"volume": {"id": "` + volumeID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.CreateVolume(ctx, volume.CreateOptions{Name: "n", Size: volume.GiB(1)})
		return err
	}},
	{"create from backup", true, answer{status: 202, body: `{"volume": {"id": "` + volumeID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.CreateVolume(ctx, volume.CreateOptions{Name: "n", Size: volume.GiB(1), BackupID: snapshotID})
		return err
	}},
	{"volume", false, answer{status: 200, body: `{"volume": {"id": "` + volumeID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Volume(ctx, volumeID)
		return err
	}},
	{"named", false, answer{status: 200, body: `{"volumes": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.VolumesNamed(ctx, "n")
		return err
	}},
	{"volumes", false, answer{status: 200, body: `{"volumes": []}`}, func(ctx context.Context, c *Cloud) error {
		_, _, err := c.Select(ctx, volume.Selection{})
		return err
	}},
	{"changed volumes", false, answer{status: 200, body: `{"volumes": []}`}, func(ctx context.Context, c *Cloud) error {
		_, _, err := c.Select(ctx, volume.Selection{Since: time.Unix(0, 0)})
		return err
	}},
	{"delete", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.DeleteVolume(ctx, volumeID) }},
	{"failure", false, answer{status: 200, body: `{"messages": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Failure(ctx, volumeID)
		return err
	}},
	{"server", false, answer{status: 200, body: `{"server": {"id": "` + serverID + `"}}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.Server(ctx, serverID)
		return err
	}},
	{"attachments", false, answer{status: 200, body: `{"volumeAttachments": []}`}, func(ctx context.Context, c *Cloud) error {
		_, err := c.ServerAttachments(ctx, serverID)
		return err
	}},
	{"attach", true, answer{status: 200, body: `{}`}, func(ctx context.Context, c *Cloud) error {
		return c.Attach(ctx, serverID, volume.Volume{ID: volumeID})
	}},
	{"attach multiattach", true, answer{status: 200, body: `{}`}, func(ctx context.Context, c *Cloud) error {
		return c.Attach(ctx, serverID, volume.Volume{ID: volumeID, Multiattach: true})
	}},
	{"detach", true, answer{status: 202}, func(ctx context.Context, c *Cloud) error { return c.Detach(ctx, serverID, volumeID) }},
}, expandOperations, snapshotOperations, backupOperations, zoneOperations, typeOperations, attachmentOperations)

// An RPC keeps an object, and the list of its attachments, for as long as it waits.
func TestAnObjectThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	const uuid = "3c902e53-0961-48eb-8b0c-2de7acd39276"
	full := map[string]any{"id": uuid, "description": strings.Repeat("d", 255)} // what Cinder and Nova allow
	metadata, attachments := map[string]string{}, []any{}
	for i := range 128 {
		metadata[strconv.Itoa(i)+strings.Repeat("k", 252)] = strings.Repeat("v", 255)
	}
	for range 64 {
		attachments = append(attachments, map[string]any{"id": uuid, "attachment_id": uuid, "server_id": uuid, "volume_id": uuid, "device": "/dev/vdb"})
	}
	full["metadata"], full["attachments"] = metadata, attachments
	long := map[string]string{}
	for i := range 400 {
		long[strconv.Itoa(i)] = strings.Repeat("v", 1000)
	}
	many := map[string]string{}
	for i := range 20_000 {
		many[strconv.Itoa(i)] = ""
	}
	objects := map[string]any{"long entries": long, "many entries": many}
	for _, op := range operations {
		if op.answer.body == "" || op.write && !strings.HasPrefix(op.name, "create") || strings.HasSuffix(op.name, "failure") || op.name == "create backup" || op.name == "create backup in zone" {
			continue // the driver reads nothing, or keeps only a short text
		}
		send := func(object map[string]any) error {
			var document map[string]any
			if err := json.Unmarshal([]byte(op.answer.body), &document); err != nil {
				t.Fatal(err)
			}
			for key, value := range document {
				switch value := value.(type) {
				case []any:
					document[key] = []any{object}
				case map[string]any:
					whole := maps.Clone(object)
					maps.Copy(whole, value)
					document[key] = whole
				}
			}
			text, err := json.Marshal(document)
			if err != nil {
				t.Fatal(err)
			}
			c, _ := connect(t, answer{status: op.answer.status, body: string(text)})
			return op.run(t.Context(), c)
		}
		if err := send(full); err != nil {
			t.Errorf("%s: an object with all that Cinder allows: %v", op.name, err)
		}
		for what, metadata := range objects {
			if op.name == "quotas" {
				continue // TestQuotasAreRead
			}
			err := send(map[string]any{"id": uuid, "metadata": metadata})
			if !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), "too large") {
				t.Errorf("%s: %s: %v", op.name, what, err)
			}
		}
	}
}

func TestCallsListsEveryRequestAndNoOther(t *testing.T) {
	t.Parallel()
	made := map[cloud.Call]bool{}
	for _, op := range operations {
		c, f := connect(t, op.answer)
		if err := op.run(t.Context(), c); err != nil {
			t.Errorf("%s: %v", op.name, err)
		}
		if len(f.seen) != 1 {
			t.Errorf("%s made %d requests, want 1", op.name, len(f.seen))
		}
		for _, s := range f.seen {
			listed := false
			for _, call := range Calls {
				if call.Is(s.Method, s.Path, s.Microversion) {
					made[call], listed = true, true
				}
			}
			if !listed {
				t.Errorf("%s sends %s %s at %q, which Calls does not list", op.name, s.Method, s.Path, s.Microversion)
			}
		}
	}
	for _, call := range Calls {
		if !made[call] {
			t.Errorf("Calls lists %v, which nothing sends", call)
		}
	}
}

// requestCase is a call, and the request that it sends.
type requestCase struct {
	name string
	run  func(context.Context, *Cloud)
	want seen
}

var volumeRequests = []requestCase{
	{
		"create",
		func(ctx context.Context, c *Cloud) {
			_, _ = c.CreateVolume(ctx, volume.CreateOptions{
				Name: "pvc", Size: volume.GiB(1) + 1, Type: "fast", Zone: "az1", SourceID: volumeID, Description: "d", Metadata: map[string]string{"k": "v"},
			})
		},
		seen{"POST", "/v3/p/volumes", "", "", `{"volume":{"name":"pvc","size":2,"volume_type":"fast","availability_zone":"az1","source_volid":"` + volumeID + `","description":"d","metadata":{"k":"v"}}}`},
	},
	{
		"named",
		func(ctx context.Context, c *Cloud) { _, _ = c.VolumesNamed(ctx, "a&b c") },
		seen{"GET", "/v3/p/volumes/detail", "limit=1000&name=a%26b+c", "", ""},
	},
	{
		"page",
		func(ctx context.Context, c *Cloud) {
			_, _, _ = c.Select(ctx, volume.Selection{Page: volume.Page{Marker: volumeID, Limit: 7}})
		},
		seen{"GET", "/v3/p/volumes/detail", "limit=7&marker=" + volumeID, "", ""},
	},
	{
		"page of those created since",
		func(ctx context.Context, c *Cloud) {
			_, _, _ = c.Select(ctx, volume.Selection{Created: time.Date(2026, 11, 21, 11, 42, 47, 0, time.FixedZone("", 3600))})
		},
		seen{"GET", "/v3/p/volumes/detail", "created_at=gte%3A2026-11-21T10%3A42%3A47&limit=1000", "3.60", ""},
	},
	{
		"messages",
		func(ctx context.Context, c *Cloud) { _, _ = c.Failure(ctx, volumeID) },
		seen{"GET", "/v3/p/messages", "limit=1000&resource_uuid=" + volumeID, "3.5", ""},
	},
	{
		"server with its tags",
		func(ctx context.Context, c *Cloud) { _, _ = c.Server(ctx, serverID) },
		seen{"GET", "/v2.1/servers/" + serverID, "", "2.26", ""},
	},
	{
		"attach",
		func(ctx context.Context, c *Cloud) { _ = c.Attach(ctx, serverID, volume.Volume{ID: volumeID}) },
		seen{"POST", "/v2.1/servers/" + serverID + "/os-volume_attachments", "", "2.20", `{"volumeAttachment":{"volumeId":"` + volumeID + `"}}`},
	},
	{
		"detach",
		func(ctx context.Context, c *Cloud) { _ = c.Detach(ctx, serverID, volumeID) },
		seen{"DELETE", "/v2.1/servers/" + serverID + "/os-volume_attachments/" + volumeID, "", "2.20", ""},
	},
}

func TestRequestsSayWhatIsMeant(t *testing.T) {
	t.Parallel()
	for _, tc := range slices.Concat(volumeRequests, snapshotRequests, backupRequests) {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c, f := connect(t, answer{status: 200, body: `{}`})
			tc.run(t.Context(), c)
			if diff := cmp.Diff([]seen{tc.want}, f.seen); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// detail is a volume as Cinder 21.3 writes it.
const detail = `{"id": "` + volumeID + `", "status": "in-use", "size": 2, "availability_zone": "az1", "created_at": "2026-11-21T10:42:47.897026",
	"updated_at": null, "name": "pvc", "description": "d", "volume_type": "fast", "snapshot_id": null, "source_volid": null,
	"metadata": {"k": "v"}, "links": [], "user_id": "u", "bootable": "true", "encrypted": false, "replication_status": null,
	"consistencygroup_id": null, "multiattach": true, "attachments": [{"id": "` + volumeID + `", "attachment_id": "72f3c0de-0000-4000-8000-000000000000",
	"volume_id": "` + volumeID + `", "server_id": "` + serverID + `", "host_name": null, "device": "/dev/vdb", "attached_at": "2026-11-21T10:42:50.000000"}],
	"os-vol-tenant-attr:tenant_id": "p"}`

func TestAVolumeIsReadWhole(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 200, body: `{"volume": ` + detail + `}`})
	got, err := c.Volume(t.Context(), volumeID)
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Volume{
		ID: volumeID, Name: "pvc", Status: volume.InUse, Size: volume.GiB(2), Zone: "az1", Type: "fast", Multiattach: true, Bootable: true,
		Description: "d", Metadata: map[string]string{"k": "v"},
		Attachments: []volume.Attachment{{ID: "72f3c0de-0000-4000-8000-000000000000", Volume: volumeID, Server: serverID, Status: volume.AttachmentAttached, Device: "/dev/vdb"}},
		CreatedAt:   time.Date(2026, 11, 21, 10, 42, 47, 897026000, time.UTC),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("volume (-want +got):\n%s", diff)
	}
}

// What cinderclient's local-attach leaves, as an administrator sees it.
func TestAHostsAttachmentHasNoServer(t *testing.T) {
	t.Parallel()
	body := strings.NewReplacer(`"`+serverID+`"`, "null", `"host_name": null`, `"host_name": "kvm-7"`).Replace(detail)
	c, _ := connect(t, answer{status: 200, body: `{"volume": ` + body + `}`})
	got, err := c.Volume(t.Context(), volumeID)
	if err != nil {
		t.Fatal(err)
	}
	want := []volume.Attachment{{ID: "72f3c0de-0000-4000-8000-000000000000", Volume: volumeID, Status: volume.AttachmentAttached, Host: "kvm-7", Device: "/dev/vdb"}}
	if diff := cmp.Diff(want, got.Attachments); diff != "" {
		t.Errorf("attachments (-want +got):\n%s", diff)
	}
}

func TestNamesAreComparedExactlyAndAllPagesAreRead(t *testing.T) {
	t.Parallel()
	snapshots := func(all []volume.Snapshot, err error) ([]string, error) {
		var ids []string
		for _, s := range all {
			ids = append(ids, string(s.ID)+" "+s.Metadata[contract.MetadataCluster]+" "+strconv.FormatBool(s.Backup))
		}
		return ids, err
	}
	for collection, tc := range map[string]struct {
		named func(c *Cloud, name string) ([]string, error)
		want  string
	}{
		"volumes": {func(c *Cloud, name string) (ids []string, err error) {
			all, err := c.VolumesNamed(t.Context(), name)
			for _, v := range all {
				ids = append(ids, string(v.ID)+" "+v.Metadata[contract.MetadataCluster])
			}
			return ids, err
		}, snapshotID + " v"},
		"snapshots": {func(c *Cloud, name string) ([]string, error) { return snapshots(c.SnapshotsNamed(t.Context(), name)) }, snapshotID + " v false"},
		"backups":   {func(c *Cloud, name string) ([]string, error) { return snapshots(c.BackupsNamed(t.Context(), name)) }, snapshotID + " v true"},
	} {
		page := func(id, name, links string) answer {
			return answer{status: 200, body: `{"` + collection + `": [{"id": "` + id + `", "name": "` + name + `", "metadata": {"` + contract.MetadataCluster + `": "v"}}], "` + collection + `_links": [` + links + `]}`}
		}
		c, f := connect(t, page(volumeID, "PVC", `{"rel": "next", "href": "http://elsewhere"}`), page(snapshotID, "pvc", ""))
		got, err := tc.named(c, "pvc")
		if diff := cmp.Diff([]string{tc.want}, got); diff != "" || err != nil {
			t.Errorf("%s: %v, want the one on the second page (-want +got):\n%s", collection, err, diff)
		}
		if len(f.seen) != 2 || f.seen[1].Query != "limit=1000&marker="+volumeID+"&name=pvc" {
			t.Errorf("%s: requests %v", collection, f.seen)
		}
		if _, err := tc.named(c, ""); !volume.Is(err, volume.InvalidArgument) || len(f.seen) != 2 {
			t.Errorf("%s, an empty name: %v; Cinder would list everything", collection, err)
		}
	}
}

func TestServerAndAttachments(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 200, body: `{"server": {"id": "` + serverID + `", "name": "node", "status": "ACTIVE", "OS-EXT-STS:task_state": null, "OS-EXT-AZ:availability_zone": "az1"}}`},
		answer{status: 200, body: `{"volumeAttachments": [{"id": "` + volumeID + `", "volumeId": "` + volumeID + `", "serverId": "` + serverID + `", "device": "/dev/vdb"}]}`})
	s, err := c.Server(t.Context(), serverID)
	if diff := cmp.Diff(volume.Server{ID: serverID, Name: "node", Status: "ACTIVE", Zone: "az1"}, s); err != nil || diff != "" {
		t.Errorf("server: %v (-want +got):\n%s", err, diff)
	}
	a, err := c.ServerAttachments(t.Context(), serverID)
	if diff := cmp.Diff([]volume.Attachment{{Volume: volumeID, Server: serverID, Device: "/dev/vdb"}}, a); err != nil || diff != "" {
		t.Errorf("attachments: %v (-want +got):\n%s", err, diff)
	}
}

func TestFailureIsEveryErrorMessageOnceOldestFirst(t *testing.T) {
	t.Parallel()
	c, f := connect(t, answer{status: 200, body: `{"messages": [
		{"message_level": "ERROR", "created_at": "2026-11-21T10:00:02.000000", "user_message": "second"},
		{"message_level": "ERROR", "created_at": "2026-11-21T10:00:02.500000", "user_message": "first"},
		{"message_level": "ERROR", "created_at": "2026-11-21T10:00:01.000000", "user_message": "first"},
		{"message_level": "INFO", "created_at": "2026-11-21T10:00:03.000000", "user_message": "chatter"}]}`})
	if got, err := c.Failure(t.Context(), volumeID); got != "first; second" || err != nil {
		t.Errorf("Failure = %q, %v", got, err)
	}
	for _, status := range []int{404, 406} {
		f.script = []answer{{status: status}}
		if got, err := c.Failure(t.Context(), volumeID); got != "" || err != nil {
			t.Errorf("HTTP %d: %q, %v; a cloud that does not say is no error", status, got, err)
		}
	}
	f.script = []answer{{status: 403, body: `{"forbidden": {"message": "Policy doesn't allow message:get_all"}}`}}
	if got, err := c.Failure(t.Context(), volumeID); !strings.Contains(got, "message:get_all") || err != nil {
		t.Errorf("HTTP 403: %q, %v; want the right that is missing", got, err)
	}
	f.script = []answer{{status: 503}}
	if _, err := c.Failure(t.Context(), volumeID); !volume.Is(err, volume.Unavailable) {
		t.Errorf("HTTP 503: %v", err)
	}
}

func TestWhatIsNotAUUIDDoesNotExistAndIsNeverAsked(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "x", "../detail", volumeID + "/action", strings.ReplaceAll(volumeID, "-", ""), "{" + volumeID + "}", volumeID + "\n"} {
		c, f := connect(t, answer{status: 200, body: `{}`})
		ctx := t.Context()
		v, s, server := volume.ID(id), volume.SnapshotID(id), volume.ServerID(id)
		optional := "x" + id // where an empty one means none
		_, create := c.CreateVolume(ctx, volume.CreateOptions{Name: "n", SnapshotID: optional})
		_, clone := c.CreateVolume(ctx, volume.CreateOptions{Name: "n", SourceID: volume.ID(optional)})
		_, restore := c.CreateVolume(ctx, volume.CreateOptions{Name: "n", BackupID: optional})
		_, read := c.Volume(ctx, v)
		_, readServer := c.Server(ctx, server)
		_, attachments := c.ServerAttachments(ctx, server)
		_, _, page := c.Select(ctx, volume.Selection{Page: volume.Page{Marker: volume.ID(optional)}})
		_, createSnapshot := c.CreateSnapshot(ctx, volume.SnapshotOptions{Name: "n", Volume: v})
		_, readSnapshot := c.Snapshot(ctx, s)
		_, _, snapshots := c.Snapshots(ctx, volume.SnapshotPage{Marker: volume.SnapshotID(optional)})
		_, _, snapshotsOf := c.Snapshots(ctx, volume.SnapshotPage{Volume: volume.ID(optional)})
		_, readBackup := c.Backup(ctx, s)
		_, backupOfVolume := c.CreateBackup(ctx, volume.BackupOptions{Name: "n", Volume: v, Snapshot: snapshotID})
		_, backupOfSnapshot := c.CreateBackup(ctx, volume.BackupOptions{Name: "n", Volume: volumeID, Snapshot: s})
		_, _, backups := c.Backups(ctx, volume.SnapshotPage{Volume: volume.ID(optional)})
		for name, err := range map[string]error{
			"create": create, "clone": clone, "restore": restore, "read": read, "server": readServer, "attachments": attachments, "page": page,
			"extend": c.Extend(ctx, v, volume.GiB(1), true), "delete": c.DeleteVolume(ctx, v), "attach": c.Attach(ctx, serverID, volume.Volume{ID: v}),
			"attach to": c.Attach(ctx, server, volume.Volume{ID: volumeID}), "metadata": c.AddMetadata(ctx, v, nil), "remove metadata": c.RemoveMetadata(ctx, v, "k"),
			"detach": c.Detach(ctx, serverID, v), "detach from": c.Detach(ctx, server, volumeID),
			"create snapshot": createSnapshot, "read snapshot": readSnapshot, "page of snapshots": snapshots, "snapshots of a volume": snapshotsOf,
			"delete snapshot": c.DeleteSnapshot(ctx, s), "read backup": readBackup, "backup of a volume": backupOfVolume, "backup of a snapshot": backupOfSnapshot,
			"backups of a volume": backups, "delete backup": c.DeleteBackup(ctx, s),
			"restore backup": c.RestoreBackup(ctx, s, volumeID), "restore into volume": c.RestoreBackup(ctx, snapshotID, v),
		} {
			if !volume.Is(err, volume.NotFound) {
				t.Errorf("%s of %q: %v, want not found", name, id, err)
			}
		}
		for _, failure := range []func() (string, error){
			func() (string, error) { return c.Failure(ctx, v) }, func() (string, error) { return c.SnapshotFailure(ctx, s) },
		} {
			if text, err := failure(); text != "" || err != nil {
				t.Errorf("failure of %q: %q, %v", id, text, err)
			}
		}
		if len(f.seen) != 0 {
			t.Errorf("%q was sent: %v", id, f.seen)
		}
	}
}

func TestAnswersHaveTheirKind(t *testing.T) {
	t.Parallel()
	fault := func(text string) string {
		b, _ := json.Marshal(text)
		return `{"badRequest": {"code": 1, "message": ` + string(b) + `}}`
	}
	for name, tc := range map[string]struct {
		operation string
		status    int
		text      string
		want      volume.Kind
	}{
		"unknown zone":              {"create", 400, "Availability zone 'nope' is invalid.", volume.NotInZone},
		"zone of the source":        {"create", 400, "Invalid input received: Volume must be in the same availability zone as the snapshot", volume.NotInZone},
		"zones of the type":         {"create", 400, "Volume type is only supported in these availability zones: ['az2']", volume.NotInZone},
		"too small for the type":    {"create", 400, "Invalid input received: Specified volume size of '1' is less than the minimum required size of '3' for volume type 't'.", volume.OutOfRange},
		"too large for the type":    {"extend", 400, "Invalid input received: Specified volume size of '9' is greater than the maximum allowable size of '5' for volume type 't'.", volume.OutOfRange},
		"too large for the quota":   {"create", 413, "VolumeSizeExceedsLimit: Requested volume size 9G is larger than maximum allowed limit 5G.", volume.OutOfRange},
		"an extension beyond it":    {"extend attached", 413, "VolumeSizeExceedsLimit: Requested volume size 9G is larger than maximum allowed limit 5G.", volume.OutOfRange},
		"unknown type":              {"create", 404, "Volume type with name nope could not be found.", volume.InvalidArgument},
		"unknown source":            {"create", 404, "Snapshot " + snapshotID + " could not be found.", volume.NotFound},
		"quota":                     {"create", 413, "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes_corporate quota.", volume.Exhausted},
		"old rate limit":            {"create", 413, "This request was rate-limited.", volume.Unavailable},
		"backup unsupported":        {"create from backup", 406, "Version 3.47 is not supported by the API.", volume.Unimplemented},
		"gone":                      {"volume", 404, "Volume could not be found.", volume.NotFound},
		"in use":                    {"delete", 400, "Invalid volume: Volume status must be available or error or error_restoring …", volume.Conflict},
		"deleted":                   {"delete", 404, "Volume could not be found.", volume.NotFound},
		"attached elsewhere":        {"attach", 400, "Invalid volume: volume " + volumeID + " is already attached to instances: " + serverID, volume.Conflict},
		"creating still":            {"attach", 400, "Invalid volume: volume '" + volumeID + "' status must be 'available'. Currently in 'creating'", volume.Busy},
		"other zone":                {"attach", 400, "Instance and volume are not in the same availability_zone. Instance is in az1. Volume is in nova", volume.Conflict},
		"multiattach unsupported":   {"attach multiattach", 400, "Multiattach volumes are only supported starting with compute API version 2.60", volume.Unimplemented},
		"multiattach by no driver":  {"attach multiattach", 400, "Volume " + volumeID + " has 'multiattach' set, which is not supported for this instance.", volume.Unimplemented},
		"multiattach of a shelved":  {"attach multiattach", 400, "Attaching multiattach volumes is not supported for shelved-offloaded instances.", volume.Conflict},
		"too many disks":            {"attach", 403, "The maximum allowed number of disk devices (26) to attach to a single instance has been exceeded.", volume.Exhausted},
		"compute quota":             {"attach", 403, "Quota exceeded for volumes", volume.Exhausted},
		"policy":                    {"attach", 403, "Policy doesn't allow os_compute_api:os-volumes-attachments:create to be performed.", volume.PermissionDenied},
		"server gone":               {"attach", 404, "Instance could not be found.", volume.NotFound},
		"server busy":               {"attach", 409, "Cannot 'attach_volume' instance while it is in task_state rebuilding", volume.Busy},
		"host down":                 {"detach", 409, "Service is unavailable at this time.", volume.Busy},
		"not attached":              {"detach", 404, "Instance is not attached to volume", volume.NotFound},
		"detaching":                 {"detach", 400, "Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status must be 'attached' to detach.", volume.Busy},
		"retyped already":           {"retype", 400, "Invalid volume: Retype needs volume to be in available or in-use state, not be part of an active migration …", volume.Conflict},
		"multiattach in use":        {"retype", 400, "Invalid input received: Invalid volume_type passed, retypes affecting multiattach are only allowed on available volumes, …", volume.Conflict},
		"retype to smaller ones":    {"retype", 400, "Invalid input received: Specified volume size of '2' is greater than …", volume.InvalidArgument},
		"retype to nothing":         {"retype", 404, "Volume type with name x could not be found.", volume.InvalidArgument},
		"retype of nothing":         {"retype", 404, "Volume " + volumeID + " could not be found.", volume.NotFound},
		"retype beyond a quota":     {"retype", 413, "VolumeSizeExceedsAvailableQuota: …", volume.Exhausted},
		"metadata while uploading":  {"add metadata", 400, "Invalid volume: Updating volume metadata is not allowed for volumes in uploading status.", volume.Busy},
		"removal while uploading":   {"remove metadata", 400, "Invalid volume: Deleting volume metadata is not allowed for volumes in uploading status.", volume.Busy},
		"key gone":                  {"remove metadata", 404, "Volume has no metadata with key k.", volume.NotFound},
		"extending already":         {"extend", 400, "Invalid volume: Volume status must be '{'status': 'available'}' to extend, currently extending.", volume.Busy},
		"quota of an extension":     {"extend attached", 413, "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota.", volume.Exhausted},
		"snapshot while attaching":  {"create snapshot", 400, "Invalid volume: Volume " + volumeID + " status must be available, but current status is: attaching.", volume.Busy},
		"snapshot while migrating":  {"create snapshot", 400, "Invalid volume: Snapshot cannot be created while volume is migrating.", volume.Conflict},
		"snapshot on frozen":        {"create snapshot", 400, "Invalid input received: Modification operations are not allowed on frozen storage backends.", volume.Conflict},
		"deletion on frozen":        {"delete snapshot", 400, "Invalid input received: Modification operations are not allowed on frozen storage backends.", volume.Conflict},
		"snapshot of nothing":       {"create snapshot", 404, "Volume could not be found.", volume.NotFound},
		"snapshot quota":            {"create snapshot in use", 413, "SnapshotLimitExceeded: Maximum number of snapshots allowed (20) exceeded for quota 'snapshots_fast'.", volume.Exhausted},
		"snapshot too new a way":    {"create snapshot in use", 406, "Version 3.66 is not supported by the API.", volume.Unimplemented},
		"snapshot of a group":       {"delete snapshot", 400, "Invalid snapshot: Snapshot status must be available or error and must not be part of a group.", volume.Conflict},
		"source not ready":          {"create", 400, "Invalid snapshot: Originating snapshot status must be one of 'available' values", volume.Busy},
		"a key that stays":          {"delete", 400, "Invalid volume: Unable to delete encryption key for volume.", volume.Failed},
		"no key":                    {"create", 400, "Key manager error", volume.Unavailable},
		"policy for a list":         {"volumes", 403, "Policy doesn't allow", volume.PermissionDenied},
		"too many requests":         {"detach", 429, "", volume.Unavailable},
		"rate limited by a proxy":   {"volume", 498, "", volume.Unavailable},
		"a write limited by it":     {"detach", 498, "", volume.Unavailable},
		"no such method":            {"detach", 405, "", volume.Unimplemented},
		"server in error":           {"attach", 409, "Cannot 'attach_volume' instance while it is in vm_state error", volume.Conflict},
		"server locked":             {"attach", 409, "Instance is locked", volume.Busy},
		"server error":              {"create", 500, "The server has either erred or is incapable of performing the requested operation.", volume.Unavailable},
		"bad gateway":               {"attach", 502, "", volume.Unavailable},
		"not implemented":           {"detach", 501, "", volume.Unimplemented},
		"backup of a busy snapshot": {"create backup", 400, "Invalid snapshot: Snapshot to be backed up must be available, but the current status is \"backing-up\".", volume.Busy},
		"backup of a busy volume":   {"create backup", 400, "Invalid volume: Volume to be backed up must be available or in-use, but the current status is \"extending\".", volume.Busy},
		"restore of a busy backup":  {"restore backup", 400, "Invalid backup: Backup status must be available", volume.Busy},
		"restore into busy volume":  {"restore backup", 400, "Invalid volume: Volume to be restored to must be available", volume.Busy},
		"restore into small volume": {"restore backup", 400, "Invalid volume: volume size 1 is too small to restore backup of size 2.", volume.InvalidArgument},
		"backup with a busy parent": {"create backup", 400, "Invalid backup: The parent backup must be available for incremental backup.", volume.Busy},
		"backup without a parent":   {"create backup", 400, "Invalid backup: No backups available to do an incremental backup.", volume.Busy},
		"backup of another volume":  {"create backup", 400, "Invalid volume: Volume a does not match with snapshot.volume_id b.", volume.InvalidArgument},
		"backup policy":             {"create backup", 403, "Policy doesn't allow backup:create to be performed.", volume.PermissionDenied},
		"backup of nothing":         {"create backup", 404, "Snapshot could not be found.", volume.NotFound},
		"backup too new a way":      {"create backup in zone", 406, "Version 3.51 is not supported by the API. Minimum is 3.0 and maximum is 3.50.", volume.Unimplemented},
		"backup quota":              {"create backup", 413, "BackupLimitExceeded: Maximum number of backups allowed (10) exceeded", volume.Exhausted},
		"no backup service":         {"create backup", 503, "Service cinder-backup could not be found.", volume.Unavailable},
		"backup with children":      {"delete backup", 400, "Invalid backup: Incremental backups exist for this backup.", volume.Conflict},
		"backup gone":               {"delete backup", 404, "Backup could not be found.", volume.NotFound},
		"backup deletion refused":   {"delete backup", 403, "", volume.PermissionDenied},
		"backup deletion fails":     {"delete backup", 500, "", volume.Unavailable},
		"backup read wrongly":       {"backup", 400, "Invalid backup", volume.Unavailable},
		"backup read refused":       {"backup", 403, "", volume.PermissionDenied},
		"backup not there":          {"backup", 404, "Backup could not be found.", volume.NotFound},
		"backup read fails":         {"backup", 503, "", volume.Unavailable},
		"a redirect":                {"volume", 302, "", volume.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			op := operationNamed(t, tc.operation)
			c, _ := connect(t, answer{status: tc.status, body: fault(tc.text)})
			err := op.run(t.Context(), c)
			var failure *volume.Error
			if !errors.As(err, &failure) {
				t.Fatalf("error %v, want a *volume.Error", err)
			}
			if failure.Kind != tc.want {
				t.Errorf("kind %v, want %v: %v", failure.Kind, tc.want, err)
			}
			if failure.RequestID != requestIDs || failure.Operation == "" || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("the error lacks the request's id, the operation or Cinder's words: %v", err)
			}
			if sent := op.write && tc.status >= 500; failure.Sent != sent {
				t.Errorf("Sent = %v, want %v", failure.Sent, sent)
			}
		})
	}
}

// An ingress without a route, a firewall or an API gateway answers by itself. Cinder's and Nova's own failures are JSON under a known name, and
// have a request ID.
func TestAnAnswerOfAProxyIsNeverFinal(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{
		"ingress": "default backend - 404", "html": "<html><head><title>404 Not Found</title></head></html>", "nothing": "",
		"gateway": `{"message": "no Route matched with those values"}`, "another gateway": `{"error": {"code": 404, "message": "Not Found"}}`,
	} {
		for _, status := range []int{400, 401, 402, 403, 404, 405, 406, 409, 410, 413, 418, 429, 431, 451, 501} {
			for _, op := range operations {
				c, _ := connect(t, answer{status: status, body: page, header: map[string]string{"X-Openstack-Request-Id": ""}})
				err := op.run(t.Context(), c)
				var failure *volume.Error
				if !errors.As(err, &failure) || failure.Kind != volume.Unavailable || failure.Sent != (op.write && status >= 500) {
					t.Errorf("%s, %s: HTTP %d: %#v, want unavailable", name, op.name, status, err)
				}
			}
		}
	}
}

// A proxy may drop the headers of the service: then the body shows who has answered.
func TestAnAnswerOfTheServiceNeedsNoRequestID(t *testing.T) {
	t.Parallel()
	none := map[string]string{"X-Openstack-Request-Id": ""}
	for name, a := range map[string]answer{
		"the body":   {status: 404, body: `{"itemNotFound": {"code": 404, "message": "Volume could not be found."}}`, header: none},
		"the header": {status: 404, body: "<html></html>"},
	} {
		c, _ := connect(t, a)
		if _, err := c.Volume(t.Context(), volumeID); !volume.Is(err, volume.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, _ := connect(t, answer{status: 401, header: map[string]string{"X-Openstack-Request-Id": "", "WWW-Authenticate": "Keystone uri=\"https://k\""}})
	if _, err := c.Volume(t.Context(), volumeID); !volume.Is(err, volume.PermissionDenied) {
		t.Errorf("the Keystone middleware: %v", err)
	}
}

// Advice belongs to one answer to one request. Beside that it sends an operator to the wrong place.
func TestAdviceIsForOneAnswerOfOneRequest(t *testing.T) {
	t.Parallel()
	for words, test := range map[string]struct {
		text, operation string
		status          int // 0 is any
	}{
		"nova-compute is down":      {"Service is unavailable at this time.", "detach", 409},
		"the role that may create":  {"Key manager error", "create", 0},
		"in status error_deleting,": {"Invalid volume: Unable to delete encryption key for volume.", "delete", 0},
	} {
		for _, operation := range []string{"detach", "attach", "create", "delete", "volume"} {
			for _, status := range []int{400, 409} {
				for _, text := range []string{test.text, "another reason"} {
					c, _ := connect(t, answer{status: status, body: `{"badRequest": {"message": "` + text + `"}}`})
					err := operationNamed(t, operation).run(t.Context(), c)
					want := operation == test.operation && text == test.text && (status == test.status || test.status == 0)
					if said := strings.Contains(err.Error(), words); said != want {
						t.Errorf("%s, HTTP %d: want the advice %t: %v", operation, status, want, err)
					}
				}
			}
		}
	}
}

func TestARefusedKeySaysWhichRoleTheCredentialMayLack(t *testing.T) {
	t.Parallel()
	for operation, test := range map[string]struct{ answer, want string }{
		"create": {"Key manager error", `Key manager error. Cinder asks the key manager (Barbican)`},
		"delete": {"Invalid volume: Unable to delete encryption key for volume.", `The volume is now in status error_deleting, which an administrator`},
	} {
		c, _ := connect(t, answer{status: 400, body: `{"badRequest": {"code": 400, "message": "` + test.answer + `"}}`})
		err := operationNamed(t, operation).run(t.Context(), c)
		if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), `mostly "creator"`) {
			t.Errorf("%s: want %q and the role, got %v", operation, test.want, err)
		}
	}
}

func operationNamed(t *testing.T, name string) operation {
	t.Helper()
	for _, op := range operations {
		if op.name == name {
			return op
		}
	}
	t.Fatalf("no operation %q", name)
	return operation{}
}

func TestBrokenConnectionsAreUnavailableAndWritesMayHaveArrived(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, tc := range map[string]struct {
		answer answer
		sent   bool
	}{
		"refused":       {answer{err: refused}, false},
		"dropped":       {answer{err: io.ErrUnexpectedEOF}, true},
		"reset":         {answer{err: &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}}, true},
		"proxy is away": {answer{err: &net.OpError{Op: "proxyconnect", Err: errors.New("timeout")}}, false},
	} {
		for _, op := range operations {
			c, _ := connect(t, tc.answer)
			err := op.run(t.Context(), c)
			var failure *volume.Error
			if !errors.As(err, &failure) || failure.Kind != volume.Unavailable || failure.Sent != (tc.sent && op.write) {
				t.Errorf("%s, %s: %#v, want unavailable", name, op.name, err)
			}
			if strings.Contains(err.Error(), "http://") {
				t.Errorf("%s, %s: the sentence repeats the URL: %v", name, op.name, err)
			}
		}
	}
}

func TestAnAnswerThatCannotBeReadMayHaveBeenAWrite(t *testing.T) {
	t.Parallel()
	c, _ := connect(t, answer{status: 202, body: `<html>`})
	_, err := c.CreateVolume(t.Context(), volume.CreateOptions{Name: "n"})
	var failure *volume.Error
	if !errors.As(err, &failure) || failure.Kind != volume.Unavailable || !failure.Sent {
		t.Errorf("error %#v, want unavailable, perhaps sent", err)
	}
}

func TestTheCallersContextAndTheRequestsTimeoutAreToldApart(t *testing.T) {
	t.Parallel()
	for _, op := range operations {
		synctest.Test(t, func(t *testing.T) {
			never := answer{status: 200, after: time.Hour}
			c, f := connect(t, never)
			check := func(name string, ctx context.Context, want volume.Kind, sent bool) {
				t.Helper()
				begin := time.Now()
				err := op.run(ctx, c)
				var failure *volume.Error
				if !errors.As(err, &failure) || failure.Kind != want || failure.Sent != sent {
					t.Errorf("%s, %s: %#v, want %v, sent %v", op.name, name, err, want, sent)
				}
				if waited := time.Since(begin); waited > writeTimeout {
					t.Errorf("%s, %s: waited %v", op.name, name, waited)
				}
			}
			soon, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			check("deadline", soon, volume.DeadlineExceeded, op.write)
			leaving, leave := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, leave)
			check("canceled", leaving, volume.Canceled, op.write)
			check("no deadline", t.Context(), volume.Unavailable, op.write)
			asked := len(f.seen)
			check("over before it began", leaving, volume.Canceled, false)
			if len(f.seen) != asked {
				t.Errorf("%s: a request was made for a caller that had left", op.name)
			}
		})
	}
}

func TestExpiredTokens(t *testing.T) {
	t.Parallel()
	expired := answer{status: 401}
	for name, tc := range map[string]struct {
		then  answer // after the login was renewed
		login answer // zero: it works
		want  volume.Kind
	}{
		"gone meanwhile":          {then: answer{status: 404}, want: volume.NotFound},
		"access rules":            {then: expired, want: volume.PermissionDenied},
		"credentials withdrawn":   {login: answer{status: 401}, want: volume.Unauthenticated},
		"Keystone is down":        {login: answer{status: 503, body: "<pre>X-Auth-Token: " + token}, want: volume.Unavailable},
		"a limit of Keystone":     {login: answer{status: 429, body: token}, want: volume.Unavailable},
		"Keystone is unreachable": {login: answer{err: io.ErrUnexpectedEOF}, want: volume.Unavailable},
		"another's login ended":   {login: answer{err: context.Canceled}, want: volume.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, f := connect(t, expired, tc.then)
			f.login = tc.login
			err := c.DeleteVolume(t.Context(), volumeID)
			var failure *volume.Error
			if !errors.As(err, &failure) || failure.Kind != tc.want || failure.Sent {
				t.Errorf("error %#v, want %v, never sent", err, tc.want)
			}
			if strings.Contains(err.Error(), "gate") || strings.Contains(err.Error(), token) {
				t.Errorf("it tells the login before Keystone, or a token: %v", err)
			}
		})
	}
}

func TestACloudThatCannotBeConnectedToIsToldFromOneThatRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		want   volume.Kind
	}{
		"refuses": {401, volume.Unauthenticated}, "down": {503, volume.Unavailable}, "something else": {404, volume.Unavailable},
	} {
		keystone := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.status) })
		s := cloud.Settings{Name: "fake", AuthURL: "http://keystone/v3", UserID: "u", Password: "p", ProjectID: "p"}
		live, err := cloud.NewLive(func() (cloud.Settings, error) { return s, nil }, cloud.LiveOptions{Options: cloud.Options{Transport: memnet.Transport(keystone)}})
		if err != nil {
			t.Fatal(err)
		}
		err = NewCurrent(live.Current, slog.New(slog.DiscardHandler)).DeleteVolume(t.Context(), volumeID)
		var failure *volume.Error
		if !errors.As(err, &failure) || failure.Kind != tc.want || failure.Sent {
			t.Errorf("%s: %#v, want %v", name, err, tc.want)
		}
	}
}

// token looks like one of Keystone.
var token = "gAAAAABm" + strings.Repeat("Zm9v", 20)

// Everybody who may read a claim may read its events, and a gateway may answer with what it got. So may the object store of a backup.
func TestATokenThatTheCloudRepeatsIsInNoError(t *testing.T) {
	c, _ := connect(t, answer{status: 200, body: `{"messages": [{"message_level": "ERROR", "user_message": "PUT with ` + token + ` failed"}]}`},
		answer{status: 200, body: `{"backup": {"id": "` + snapshotID + `", "fail_reason": "PUT with ` + token + ` failed"}}`})
	text, err := c.Failure(t.Context(), volumeID)
	backup, failed := c.Backup(t.Context(), snapshotID)
	if want := "PUT with REDACTED failed"; err != nil || failed != nil || text != want || backup.Reason != want {
		t.Errorf("%q, %v; %q, %v", text, err, backup.Reason, failed)
	}
	for _, op := range operations {
		c, _ := connect(t, answer{status: http.StatusForbidden, body: `{"forbidden": {"message": "the token ` + token + ` may not"}}`, header: map[string]string{"X-Openstack-Request-Id": token}})
		if err := op.run(t.Context(), c); err != nil && (strings.Contains(err.Error(), token[8:]) || !strings.Contains(err.Error(), "the token REDACTED may not")) {
			t.Errorf("%s: %v", op.name, err)
		}
	}
}
