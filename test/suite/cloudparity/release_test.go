package cloudparity

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// release is an OpenStack beside Zed, which testdata/shapes is from: the highest microversions of Cinder and Nova.
type release struct{ volume, compute string }

// releases are the releases of test/bed/clouds by the name of the cloud. Answers that differ from those of Zed are in testdata/releases/NAME.
var releases = map[string]release{
	"victoria": {"3.62", "2.87"},
	"epoxy":    {"3.71", "2.100"},
	"sid":      {"3.71", "2.104"},
}

// cloudOf is the name of the cloud in the directory of a bed. Beds of older scripts have none, and are Zed.
func cloudOf(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, "bed.json"))
	if err != nil {
		return "", err
	}
	var settings struct{ Cloud string }
	if err := json.Unmarshal(text, &settings); err != nil {
		return "", err
	}
	if settings.Cloud == "zed" {
		return "", nil
	}
	return settings.Cloud, nil
}

// lacks says whether the release of a bed has no such microversion. What asks for a microversion that no release has is a case of its own.
func (b *Bed) lacks(call cloud.Call) bool {
	r, is := releases[b.release]
	if !is || call.Microversion == unreadable || call.Microversion == unsupported[call.Service] {
		return false
	}
	highest := map[string]string{"block-storage": r.volume, "compute": r.compute}[call.Service]
	return highest != "" && minor(call.Microversion) > minor(highest)
}

// afterZed reports whether the bed is of a later release than Zed.
func (b *Bed) afterZed() bool {
	return minor(releases[b.release].volume) > openstacksim.NewestVolumeMinor
}

func minor(microversion string) int {
	_, text, _ := strings.Cut(microversion, ".")
	n, _ := strconv.Atoi(text)
	return n
}

// own is the file of an answer that differs from that of Zed. The release Zed has none.
func (b *Bed) own(c Case) string {
	return filepath.Join("testdata", "releases", b.release, c.slug()+".json")
}

// expected is the recording of a case on the release of the bed.
func (b *Bed) expected(c Case) string {
	if own := b.own(c); b.release != "" && exists(own) {
		return own
	}
	return filepath.Join("testdata", "shapes", c.slug()+".json")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// statusOf is the status that a case expects on the release of the bed.
func (b *Bed) statusOf(t *testing.T, c Case) int {
	t.Helper()
	if b.release == "" || !exists(b.own(c)) {
		return c.Status
	}
	text := testfile.Read(t, b.own(c))
	var r Recording
	testenv.Must(t, json.Unmarshal(text, &r))
	return r.Status
}

// done reports whether a request had the status that Zed gives. Another release may refuse the request. Its recording says so, and then there is no
// effect to wait for.
func (b *Bed) done(t *testing.T, a Answer, status int) bool {
	t.Helper()
	if a.Status != status && b.release != "" && (*update || a.Status == b.statusOf(t, b.running)) {
		return false
	}
	a.want(t, status)
	return true
}

// TestParityOfOtherReleases runs the cases whose answer differs between a release and Zed, against a simulation of that release.
func TestParityOfOtherReleases(t *testing.T) {
	if *bedDir != "" {
		return // TestParity runs all cases on that cloud
	}
	for name, r := range releases {
		t.Run(name, func(t *testing.T) {
			bed := testenv.Value(openSimulationOf(t, r))(t)
			bed.release, bed.suite = name, t
			bed.fence(t)
			for _, c := range cases() {
				if exists(bed.own(c)) {
					t.Run(c.Name, func(t *testing.T) { bed.run(t, c, true) })
				}
			}
		})
	}
}

// TestEachReleaseHasADirectory finds recordings of a release that the table does not have, and recordings without a case.
func TestEachReleaseHasADirectory(t *testing.T) {
	dirs := testenv.Value(os.ReadDir(filepath.Join("testdata", "releases")))(t)
	for _, dir := range dirs {
		if _, is := releases[dir.Name()]; !is {
			t.Errorf("testdata/releases/%s is the directory of no release in the table", dir.Name())
		}
		b := &Bed{release: dir.Name()}
		files := testenv.Value(os.ReadDir(filepath.Join("testdata", "releases", dir.Name())))(t)
		for _, file := range files {
			if !slices.ContainsFunc(cases(), func(c Case) bool { return filepath.Base(b.own(c)) == file.Name() }) {
				t.Errorf("testdata/releases/%s/%s is the recording of no case", dir.Name(), file.Name())
			}
		}
	}
}

// Seen on Epoxy. No case of TestParity shows it there, because such a backup stays.
func TestABackupInAZoneWithoutCinderBackupStaysOnALaterRelease(t *testing.T) {
	bed := testenv.Value(openSimulationOf(t, releases["epoxy"]))(t)
	bed.release = "epoxy"
	volume := bed.volume(t, nil)
	snapshot := bed.snapshot(t, volume)
	a := bed.do(t, Request{Call: createBackupInZone, As: Member, Body: bed.backupBody(volume, object{"snapshot_id": snapshot, "availability_zone": nowhere})})
	id := a.want(t, http.StatusAccepted).Text("backup", "id")
	bed.awaitBackup(t, id, "error")
	if zone := bed.do(t, Request{Call: getBackup, As: Member, IDs: []string{id}}).Text("backup", "availability_zone"); zone != nowhere {
		t.Errorf("want zone %q of the request, got %q", nowhere, zone)
	}
	for _, as := range []Role{Member, Admin} {
		a := bed.do(t, Request{Call: deleteBackup, As: as, IDs: []string{id}}).want(t, http.StatusNotFound)
		if message := a.Text("itemNotFound", "message"); message != "Service cinder-backup could not be found." {
			t.Errorf("%s: got %q", as, message)
		}
	}
	for id, call := range map[string]cloud.Call{volume: volumeAction, snapshot: snapshotAction} { // Cinder has not reset them
		bed.do(t, Request{Call: call, As: Admin, IDs: []string{id}, Body: object{"os-reset_status": object{"status": "available"}}}).want(t, http.StatusAccepted)
	}
}
