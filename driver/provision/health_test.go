package provision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
	"github.com/google/go-cmp/cmp"
)

const serverGone = cloudtest.NoServer

func TestHealth(t *testing.T) {
	at := func(servers ...volume.ServerID) (all []volume.Attachment) {
		for _, s := range servers {
			all = append(all, volume.Attachment{Server: s})
		}
		return all
	}
	type issue struct {
		severity volume.Severity
		reason   string
	}
	for name, test := range map[string]struct {
		volume volume.Volume
		want   []issue
	}{
		"available":                      {volume: volume.Volume{Status: volume.Available}},
		"in use":                         {volume: volume.Volume{Status: volume.InUse, Attachments: at(cloudtest.ServerA)}},
		"changing":                       {volume: volume.Volume{Status: "extending"}},
		"in error":                       {volume: volume.Volume{Status: volume.ErrorStatus}, want: []issue{{volume.Inaccessible, "Error"}}},
		"in error, but somebody has it":  {volume: volume.Volume{Status: "error_extending", Attachments: at(cloudtest.ServerA)}, want: []issue{{volume.Degraded, "ErrorExtending"}}},
		"at a server that is gone":       {volume: volume.Volume{Status: volume.InUse, Attachments: at(serverGone)}, want: []issue{{volume.Inaccessible, "AttachedToMissingServer"}}},
		"at two, one of which is gone":   {volume: volume.Volume{Status: volume.InUse, Multiattach: true, Attachments: at(cloudtest.ServerA, serverGone)}, want: []issue{{volume.Degraded, "AttachedToMissingServer"}}},
		"at a host that Nova never had":  {volume: volume.Volume{Status: volume.InUse, Attachments: at("")}},
		"in error at a server that went": {volume: volume.Volume{Status: volume.ErrorStatus, Attachments: at(serverGone)}, want: []issue{{volume.Degraded, "Error"}, {volume.Inaccessible, "AttachedToMissingServer"}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.volume.ID = cloudtest.VolumeID(1)
				c := cloudtest.New(t, test.volume)
				c.Reason = "the disk broke"
				h, err := service(c).Health(t.Context(), cloudtest.VolumeID(1))
				if err != nil {
					t.Fatal(err)
				}
				var got []issue
				for _, a := range h.Issues {
					got = append(got, issue{a.Severity, a.Reason})
					if strings.HasPrefix(a.Reason, "Error") != strings.Contains(a.Message, "the disk broke") {
						t.Errorf("message %q", a.Message)
					}
				}
				if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(issue{})); diff != "" {
					t.Error("-want +got\n", diff)
				}
			})
		})
	}
	_, err := service(cloudtest.New(t)).Health(t.Context(), cloudtest.VolumeID(1))
	cloudtest.WantKind(t, err, volume.NotFound, false)
}

// A reason is one word and unique: severity and reason identify an issue of a volume (CSI specification, VolumeHealthEntry).
func TestEveryErrorStatusIsAHealthIssue(t *testing.T) {
	var reasons []string
	for _, status := range cloudtest.EveryStatus {
		a, faulty := statusIssues[status]
		if want := strings.HasPrefix(string(status), "error") || status == "awaiting-transfer"; faulty != want {
			t.Errorf("%s: faulty %v, want %v", status, faulty, want)
		}
		if faulty && (slices.Contains(reasons, a.reason) || strings.ContainsAny(a.reason, " _-") || a.advice == "") {
			t.Errorf("%s: %+v", status, a)
		}
		reasons = append(reasons, a.reason)
	}
}

func TestListHealthReadsEachServerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []volume.Volume
		for n := range 3 {
			all = append(all, volume.Volume{ID: cloudtest.VolumeID(n), Status: volume.InUse, Attachments: []volume.Attachment{{Server: cloudtest.ServerA}, {Server: serverGone}}})
		}
		c := cloudtest.New(t, all...)
		missing := map[volume.ServerID]bool{}
		for range 2 { // pages
			got, _, err := service(c).ListHealth(t.Context(), volume.Position{}, missing)
			if err != nil || len(got) != 3 || len(got[0].Issues) != 1 || c.Count("Server") != 2 {
				t.Errorf("got %v, %v after %v", got, err, c.Calls)
			}
		}
		for kind, want := range map[volume.Kind]volume.Kind{volume.PermissionDenied: volume.Unknown, volume.Unavailable: volume.Unavailable} {
			c.Fail["Server"] = volume.Errorf(kind, "no")
			got, _, err := service(c).ListHealth(t.Context(), volume.Position{}, map[volume.ServerID]bool{})
			if volume.KindOf(err) != want || err == nil && len(got[0].Issues) != 0 {
				t.Errorf("servers that cannot be looked at (%s): got %v, %v", kind, got, err)
			}
		}
	})
}

// The cloud chooses how many servers it shows, and each costs a request.
func TestHealthReadsABoundedNumberOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []volume.Volume
		for i := range 1200 {
			if i%400 == 0 {
				all = append(all, volume.Volume{ID: cloudtest.VolumeID(i), Status: volume.InUse})
			}
			v := &all[len(all)-1]
			v.Attachments = append(v.Attachments, volume.Attachment{Server: volume.ServerID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i))})
		}
		c := cloudtest.New(t, all...)
		got, _, err := service(c).ListHealth(t.Context(), volume.Position{}, map[volume.ServerID]bool{})
		if err != nil || len(got) != 3 || c.Count("Server") != 1000 {
			t.Errorf("%d, %v after %d reads", len(got), err, c.Count("Server"))
		}
	})
}
