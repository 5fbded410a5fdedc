package volume

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const serverGone ServerID = "aaaaaaaa-0000-4000-8000-00000000dead"

func TestWhatIsWrongWithAVolume(t *testing.T) {
	at := func(servers ...ServerID) (all []Attachment) {
		for _, s := range servers {
			all = append(all, Attachment{Server: s})
		}
		return all
	}
	type ailment struct {
		severity Severity
		reason   string
	}
	for name, test := range map[string]struct {
		volume Volume
		want   []ailment
	}{
		"available":                      {volume: Volume{Status: Available}},
		"in use":                         {volume: Volume{Status: InUse, Attachments: at(serverA)}},
		"changing":                       {volume: Volume{Status: "extending"}},
		"in error":                       {volume: Volume{Status: ErrorSt}, want: []ailment{{Inaccessible, "Error"}}},
		"in error, but somebody has it":  {volume: Volume{Status: "error_extending", Attachments: at(serverA)}, want: []ailment{{Degraded, "ErrorExtending"}}},
		"at a server that is gone":       {volume: Volume{Status: InUse, Attachments: at(serverGone)}, want: []ailment{{Inaccessible, "AttachedToMissingServer"}}},
		"at two, one of which is gone":   {volume: Volume{Status: InUse, Multiattach: true, Attachments: at(serverA, serverGone)}, want: []ailment{{Degraded, "AttachedToMissingServer"}}},
		"at a host that Nova never had":  {volume: Volume{Status: InUse, Attachments: at("")}},
		"in error at a server that went": {volume: Volume{Status: ErrorSt, Attachments: at(serverGone)}, want: []ailment{{Degraded, "Error"}, {Inaccessible, "AttachedToMissingServer"}}},
	} {
		t.Run(name, func(t *testing.T) {
			test.volume.ID = id(1)
			c := newCloud(test.volume)
			delete(c.servers, serverGone)
			delete(c.servers, "")
			c.reason = "the disk broke"
			h, err := service(c).Health(t.Context(), id(1))
			if err != nil {
				t.Fatal(err)
			}
			var got []ailment
			for _, a := range h.Issues {
				got = append(got, ailment{a.Severity, a.Reason})
				if strings.HasPrefix(a.Reason, "Error") != strings.Contains(a.Message, "the disk broke") {
					t.Errorf("message %q", a.Message)
				}
			}
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(ailment{})); diff != "" {
				t.Error("-want +got\n", diff)
			}
		})
	}
	_, err := service(newCloud()).Health(t.Context(), id(1))
	wantKind(t, err, NotFound, false)
}

// A reason is one word, and none stands twice: (severity, reason) names an ailment of a volume (CSI specification, VolumeHealthEntry).
func TestEveryErrorStatusIsAnAilmentOfItsOwn(t *testing.T) {
	var reasons []string
	for _, status := range everyStatus {
		a, ill := statusIssues[status]
		if want := strings.HasPrefix(string(status), "error") || status == "awaiting-transfer"; ill != want {
			t.Errorf("%s: ill %v, want %v", status, ill, want)
		}
		if ill && (slices.Contains(reasons, a.reason) || strings.ContainsAny(a.reason, " _-") || a.advice == "") {
			t.Errorf("%s: %+v", status, a)
		}
		reasons = append(reasons, a.reason)
	}
}

func TestTheHealthOfAPageAsksForEachServerOnce(t *testing.T) {
	var all []Volume
	for n := range 3 {
		all = append(all, Volume{ID: id(n), Status: InUse, Attachments: []Attachment{{Server: serverA}, {Server: serverGone}}})
	}
	c := newCloud(all...)
	delete(c.servers, serverGone)
	got, err := service(c).ListHealth(t.Context(), Position{}, 0)
	if err != nil || len(got) != 3 || len(got[0].Issues) != 1 || c.count("Server") != 2 {
		t.Errorf("got %v, %v after %v", got, err, c.calls)
	}
	for kind, want := range map[Kind]Kind{PermissionDenied: Unknown, Unavailable: Unavailable} {
		c.fail["Server"] = Errorf(kind, "no")
		got, err := service(c).ListHealth(t.Context(), Position{}, 0)
		if KindOf(err) != want || err == nil && len(got[0].Issues) != 0 {
			t.Errorf("servers that cannot be looked at (%s): got %v, %v", kind, got, err)
		}
	}
}
