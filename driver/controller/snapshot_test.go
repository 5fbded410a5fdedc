package controller

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/cinder-csi/cinder-csi/driver/snapshot"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
)

// fakeSnapshots returns what a test sets, and keeps the spec.
type fakeSnapshots struct {
	spec     snapshot.Spec
	snapshot volume.Snapshot
	list     []volume.Snapshot
	err      error
	calls    []string
}

func (f *fakeSnapshots) Create(_ context.Context, spec snapshot.Spec) (volume.Snapshot, error) {
	f.spec, f.calls = spec, append(f.calls, "create "+spec.Name)
	return f.snapshot, f.err
}

func (f *fakeSnapshots) Delete(_ context.Context, id volume.SnapshotID) error {
	f.calls = append(f.calls, "delete "+string(id))
	return f.err
}

func (f *fakeSnapshots) Get(_ context.Context, id volume.SnapshotID) (volume.Snapshot, error) {
	switch {
	case f.err != nil:
		return volume.Snapshot{}, f.err
	case f.snapshot.ID != id:
		return volume.Snapshot{}, volume.NoSnapshot(id)
	}
	return f.snapshot, nil
}

// List returns at most two snapshots in a page.
func (f *fakeSnapshots) List(_ context.Context, source volume.ID, p volume.SnapshotPosition, limit int) ([]volume.Snapshot, error) {
	rest := slices.DeleteFunc(slices.Clone(f.list), func(p volume.Snapshot) bool { return source != "" && p.Volume != source })
	if p.After != "" {
		i := slices.IndexFunc(rest, func(q volume.Snapshot) bool { return volume.SnapshotPositionOf(q) == p })
		if i < 0 {
			return nil, volume.Errorf(volume.NotFound, "no snapshot %s", p.After)
		}
		rest = rest[i+1:]
	}
	most := 2
	if limit > 0 {
		most = min(most, limit)
	}
	return rest[:min(most, len(rest))], f.err
}

// snapshotServer has the plain cloud and one named east.
func snapshotServer(plain, east *fakeSnapshots, change ...func(*Options)) *Server {
	o := Options{
		Clouds: map[string]Cloud{"": {Volumes: &fake{}, Snapshots: plain}, "east": {Volumes: &fake{}, Snapshots: east}}, Log: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&o)
	}
	return New(o)
}

var taken = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func TestCreateSnapshot(t *testing.T) {
	f := &fakeSnapshots{snapshot: volume.Snapshot{ID: second, Volume: first, Size: volume.GiB(3), Status: volume.Available, CreatedAt: taken}}
	got, err := snapshotServer(&fakeSnapshots{}, f).CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{
		Name: "snapshot-1", SourceVolumeId: first, Secrets: map[string]string{"cloud": "east"},
		Parameters: map[string]string{
			"type": "snapshot", "force-create": "true", "csi.storage.k8s.io/volumesnapshot/name": "s", "csi.storage.k8s.io/volumesnapshot/namespace": "shop",
			"csi.storage.k8s.io/volumesnapshotcontent/name": "snapcontent-1",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantSpec := snapshot.Spec{Name: "snapshot-1", Volume: first, Force: true, Metadata: map[string]string{
		"csi.storage.k8s.io/volumesnapshot/name": "s", "csi.storage.k8s.io/volumesnapshot/namespace": "shop", "csi.storage.k8s.io/volumesnapshotcontent/name": "snapcontent-1",
	}}
	if diff := cmp.Diff(wantSpec, f.spec); diff != "" {
		t.Error("spec, -want +got\n", diff)
	}
	want := &csi.Snapshot{SnapshotId: second, SourceVolumeId: first, SizeBytes: 3 << 30, CreationTime: timestamppb.New(taken), ReadyToUse: true}
	if diff := cmp.Diff(want, got.GetSnapshot(), protocmp.Transform()); diff != "" {
		t.Error("-want +got\n", diff)
	}
}

func TestCreateSnapshotOfTypeBackup(t *testing.T) {
	for name, test := range map[string]struct {
		parameters map[string]string
		want       snapshot.BackupSpec
	}{
		"plain": {nil, snapshot.BackupSpec{PerGiB: 20 * time.Second}},
		"full": {
			map[string]string{"availability": "az2", "incremental": "true", "backup-max-duration-seconds-per-gb": "7", "force-create": "true"},
			snapshot.BackupSpec{Zone: "az2", Incremental: true, PerGiB: 7 * time.Second},
		},
	} {
		f := &fakeSnapshots{snapshot: volume.Snapshot{ID: second, Volume: first, Status: volume.Available, Backup: true}}
		req := &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: first, Parameters: map[string]string{"type": "backup"}}
		maps.Copy(req.Parameters, test.parameters)
		got, err := snapshotServer(f, f).CreateSnapshot(t.Context(), req)
		if err != nil || !got.GetSnapshot().GetReadyToUse() || got.GetSnapshot().GetSnapshotId() != second {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
		want := snapshot.Spec{Name: "s", Volume: first, Force: test.parameters["force-create"] == "true", Metadata: map[string]string{}, Backup: &test.want}
		if diff := cmp.Diff(want, f.spec); diff != "" {
			t.Errorf("%s: spec, -want +got\n%s", name, diff)
		}
	}
}

func TestGetSnapshotInEveryState(t *testing.T) {
	f := &fakeSnapshots{snapshot: volume.Snapshot{ID: second, Volume: first, Size: volume.GiB(2), Status: "creating", CreatedAt: taken, Backup: true}}
	s := snapshotServer(&fakeSnapshots{}, f)
	got, err := s.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: second, Secrets: map[string]string{"cloud": "east"}})
	want := &csi.Snapshot{SnapshotId: second, SourceVolumeId: first, SizeBytes: 2 << 30, CreationTime: timestamppb.New(taken)}
	if diff := cmp.Diff(want, got.GetSnapshot(), protocmp.Transform()); err != nil || diff != "" {
		t.Error(err, diff)
	}
	_, err = s.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: second})
	kindIs(t, err, volume.NotFound, "")
}

func TestSnapshotRequestsAreValidated(t *testing.T) {
	f := &fakeSnapshots{}
	strict := snapshotServer(f, f, func(o *Options) { o.Strict = true })
	create := func(change func(*csi.CreateSnapshotRequest)) func() error {
		return func() error {
			req := &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: first}
			change(req)
			return csitest.Outcome(strict.CreateSnapshot(t.Context(), req))
		}
	}
	moon := map[string]string{"cloud": "moon"}
	for name, test := range map[string]struct {
		call func() error
		text string
	}{
		"no name":                       {create(func(r *csi.CreateSnapshotRequest) { r.Name = "" }), "name"},
		"a name that steers a terminal": {create(func(r *csi.CreateSnapshotRequest) { r.Name = "snapshot-\x1b]0;x\a" }), "control character"},
		"a long name":                   {create(func(r *csi.CreateSnapshotRequest) { r.Name = strings.Repeat("s", 256) }), "255 characters"},
		"a VolumeSnapshot that steers a terminal": {create(func(r *csi.CreateSnapshotRequest) {
			r.Parameters = map[string]string{"csi.storage.k8s.io/volumesnapshot/name": "s\x1b[2J"}
		}), "control character"},
		"a namespace of two lines": {create(func(r *csi.CreateSnapshotRequest) {
			r.Parameters = map[string]string{"csi.storage.k8s.io/volumesnapshot/namespace": "a\nb"}
		}), "control character"},
		"a long content": {create(func(r *csi.CreateSnapshotRequest) {
			r.Parameters = map[string]string{"csi.storage.k8s.io/volumesnapshotcontent/name": strings.Repeat("s", 256)}
		}), "255 characters"},
		"no volume":     {create(func(r *csi.CreateSnapshotRequest) { r.SourceVolumeId = "" }), "source volume ID"},
		"unknown cloud": {create(func(r *csi.CreateSnapshotRequest) { r.Secrets = moon }), `"moon"`},
		"another kind":  {create(func(r *csi.CreateSnapshotRequest) { r.Parameters = map[string]string{"type": "photo"} }), `"photo"`},
		"bad force":     {create(func(r *csi.CreateSnapshotRequest) { r.Parameters = map[string]string{"force-create": "maybe"} }), "force-create"},
		"unknown":       {create(func(r *csi.CreateSnapshotRequest) { r.Parameters = map[string]string{"froce-create": "true"} }), "did you mean force-create?"},
		"bad backup time": {create(func(r *csi.CreateSnapshotRequest) {
			r.Parameters = map[string]string{"type": "backup", "backup-max-duration-seconds-per-gb": "long"}
		}), "backup-max-duration-seconds-per-gb"},
		"bad incremental": {create(func(r *csi.CreateSnapshotRequest) { r.Parameters = map[string]string{"incremental": "2"} }), "incremental"},
		"get nothing":     {func() error { _, err := strict.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{}); return err }, "snapshot ID"},
		"get elsewhere": {func() error {
			return csitest.Outcome(strict.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: first, Secrets: moon}))
		}, `"moon"`},
		"delete nothing": {func() error { _, err := strict.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{}); return err }, "snapshot ID"},
		"delete elsewhere": {func() error {
			return csitest.Outcome(strict.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: first, Secrets: moon}))
		}, `"moon"`},
		"list elsewhere": {func() error {
			return csitest.Outcome(strict.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{Secrets: moon}))
		}, `"moon"`},
		"list fewer": {func() error {
			return csitest.Outcome(strict.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{MaxEntries: -1}))
		}, "max_entries"},
	} {
		kindIs(t, test.call(), volume.InvalidArgument, test.text)
		if len(f.calls) != 0 {
			t.Errorf("%s: the domain was asked: %v", name, f.calls)
		}
	}
	if _, err := snapshotServer(f, f).CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{
		Name: "s", SourceVolumeId: first, Parameters: map[string]string{"froce-create": "true"},
	}); err != nil {
		t.Errorf("a lenient driver refuses an unknown parameter: %v", err)
	}
}

func TestErrorsOfSnapshotsStayUnchanged(t *testing.T) {
	want := errors.New("as it is")
	f := &fakeSnapshots{err: want}
	s := snapshotServer(f, f)
	_, create := s.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: first})
	_, remove := s.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: first})
	_, get := s.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: first})
	_, one := s.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: first})
	_, all := s.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{})
	for name, err := range map[string]error{"create": create, "delete": remove, "get": get, "one": one, "all": all} {
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// nine are snapshots of two volumes, of which Cinder failed to make two.
func nine() *fakeSnapshots {
	f := &fakeSnapshots{}
	for n := range 9 {
		p := volume.Snapshot{
			ID: volume.SnapshotID(first[:35] + string(rune('1'+n))), Volume: volume.ID([]string{first, second}[n%2]), Size: volume.GiB(n), Status: "available",
			CreatedAt: taken.Add(-time.Duration(n) * time.Second), Backup: n > 5,
		}
		p.Status = map[int]volume.Status{2: "error", 3: "deleting", 4: "creating"}[n]
		if p.Status == "" {
			p.Status = "available"
		}
		f.list = append(f.list, p)
	}
	return f
}

// nineFirst is the token after the first of nine.
func nineFirst() string { return snapshotToken(volume.SnapshotPositionOf(nine().list[0]), "").String() }

func TestListVolumesRefusesTheTokenOfABackup(t *testing.T) {
	backup := snapshotToken(volume.SnapshotPositionOf(nine().list[8]), "").String()
	_, err := server(&fake{}).ListVolumes(t.Context(), &csi.ListVolumesRequest{StartingToken: backup})
	kindIs(t, err, volume.Busy, "from the beginning")
	_, err = server(&fake{}).ControllerListVolumeHealth(t.Context(), &csi.ControllerListVolumeHealthRequest{StartingToken: backup})
	kindIs(t, err, volume.Busy, "from the beginning")
}

func FuzzSnapshotToken(f *testing.F) {
	f.Add("")
	f.Add(first)
	f.Add(first + ",1763719200000000")
	f.Add(first + ",1763719200000000,backup:east")
	f.Fuzz(func(t *testing.T, text string) {
		s := snapshotServer(nil, nil)
		at, err := s.parseToken(text)
		if err != nil {
			kindIs(t, err, volume.Busy, "")
			return
		}
		again, err := s.parseToken(at.String())
		if err != nil || !again.position.Created.Equal(at.position.Created) || again.position.After != at.position.After || again.backups != at.backups || again.cloud != at.cloud {
			t.Errorf("%q is %+v, which is %q, %+v, %v", text, at, at.String(), again, err)
		}
	})
}

func TestListSnapshotsReturnsEachLiveSnapshotOnce(t *testing.T) {
	for of, want := range map[string][]int64{"": {0, 1, 4, 5, 6, 7, 8}, first: {0, 4, 6, 8}, second: {1, 5, 7}} {
		for maxEntries := range int32(9) {
			for _, cloud := range []string{"", "east"} {
				s, sizes := snapshotServer(nine(), nine()), []int64{}
				request := &csi.ListSnapshotsRequest{MaxEntries: maxEntries, SourceVolumeId: of, Secrets: map[string]string{"cloud": cloud}}
				for {
					got, err := s.ListSnapshots(t.Context(), request)
					if err != nil {
						t.Fatalf("max_entries %d, token %q: %v", maxEntries, request.GetStartingToken(), err)
					}
					if maxEntries > 0 && len(got.GetEntries()) > int(maxEntries) {
						t.Errorf("max_entries %d: got %d", maxEntries, len(got.GetEntries()))
					}
					for _, entry := range got.GetEntries() {
						gib := entry.GetSnapshot().GetSizeBytes() >> 30
						if sizes = append(sizes, gib); entry.GetSnapshot().GetReadyToUse() != (gib != 4) {
							t.Errorf("readiness of %v", entry)
						}
					}
					if request.StartingToken = got.GetNextToken(); request.GetStartingToken() == "" {
						break
					}
				}
				if !slices.Equal(sizes, want) {
					t.Errorf("of %q, max_entries %d: want %v, got %v", of, maxEntries, want, sizes)
				}
			}
		}
	}
}

func TestListSnapshotsRefusesTheTokenOfAnotherCloud(t *testing.T) {
	f := nine()
	s := snapshotServer(f, nine())
	page, err := s.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{MaxEntries: 2, Secrets: map[string]string{"cloud": "east"}})
	if err != nil || page.GetNextToken() == "" {
		t.Fatalf("%v, %v", page, err)
	}
	_, err = s.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{MaxEntries: 2, StartingToken: page.GetNextToken()})
	kindIs(t, err, volume.Busy, "from the beginning")
}

func TestListSnapshotsWithAnInvalidTokenIsBusy(t *testing.T) {
	for _, token := range []string{"x", ":moon", first + ",soon", first + ":east", second, ",backup", "x,backup", nineFirst() + ",backup"} {
		f := nine()
		_, err := snapshotServer(f, f).ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{StartingToken: token})
		kindIs(t, err, volume.Busy, "from the beginning")
	}
}

func TestListSnapshotsByIDInEveryState(t *testing.T) {
	const source = "abcdef00-0000-4000-8000-000000000001"
	for status, ready := range map[volume.Status]bool{"available": true, "creating": false, "error": false, "deleting": false} {
		f := &fakeSnapshots{snapshot: volume.Snapshot{ID: second, Volume: source, Status: status, CreatedAt: taken}}
		s := snapshotServer(f, nil)
		for _, of := range []string{"", source, strings.ToUpper(source)} {
			got, err := s.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{SnapshotId: second, SourceVolumeId: of})
			if err != nil || len(got.GetEntries()) != 1 || got.GetEntries()[0].GetSnapshot().GetReadyToUse() != ready {
				t.Errorf("%s of %q: got %v, %v", status, of, got, err)
			}
		}
		for _, request := range []*csi.ListSnapshotsRequest{{SnapshotId: first}, {SnapshotId: "../types"}, {SnapshotId: second, SourceVolumeId: second}} {
			if got, err := s.ListSnapshots(t.Context(), request); err != nil || len(got.GetEntries()) != 0 {
				t.Errorf("%v: got %v, %v", request, got, err)
			}
		}
	}
}

func TestDeleteSnapshotOfANamedCloud(t *testing.T) {
	plain, east := &fakeSnapshots{}, &fakeSnapshots{}
	_, err := snapshotServer(plain, east).DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: second, Secrets: map[string]string{"cloud": "east"}})
	if err != nil || len(plain.calls) != 0 || !slices.Equal(east.calls, []string{"delete " + second}) {
		t.Errorf("got %v; %v and %v", err, plain.calls, east.calls)
	}
}

func TestCreateVolumeFromASnapshotAsksTheNodeToExpandTheFileSystem(t *testing.T) {
	f := &fake{volume: volume.Volume{ID: first, Size: volume.GiB(1)}}
	source := &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: second}}}
	for range 2 {
		got, err := server(f).CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: oneWriter, VolumeContentSource: source})
		if err != nil || f.spec.Snapshot != second || f.spec.Source != "" {
			t.Fatalf("spec %+v, %v", f.spec, err)
		}
		if diff := cmp.Diff(source, got.GetVolume().GetContentSource(), protocmp.Transform()); diff != "" || got.GetVolume().GetVolumeContext()["cinder.csi.openstack.org/resizeRequired"] != "true" {
			t.Error(got, diff)
		}
	}
}
