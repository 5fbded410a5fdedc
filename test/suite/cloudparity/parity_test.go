package cloudparity

import (
	"bytes"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var (
	bedDir = flag.String("bed", "", "directory of a running OpenStack, with its clouds.yaml; empty means the simulation")
	update = flag.Bool("update", false, "record what the real cloud answers in testdata/shapes")
	every  = flag.Int("every", 1, "play the first case and each one that comes so many after; neighbours ask the same call")
)

// Case is one request to the cloud and its expected answer.
type Case struct {
	Name   string // the behaviour of the cloud; also the name of the recording
	Call   cloud.Call
	Status int
	As     Role
	// Run prepares the objects, sends the request, and returns the answer to Call. It checks the effects of the request itself.
	Run func(t *testing.T, b *Bed) Answer
}

// slug is the file name of a case.
func (c Case) slug() string { return strings.ReplaceAll(c.Name, " ", "-") }

// cases is the suite.
func cases() []Case {
	var all []Case
	all = append(all, identityCases()...)
	all = append(all, refusalCases()...)
	all = append(all, inventoryCases()...)
	all = append(all, volumeCases()...)
	all = append(all, expandCases()...)
	all = append(all, retypeCases()...)
	all = append(all, snapshotCases()...)
	all = append(all, backupCases()...)
	all = append(all, listCases()...)
	all = append(all, changedCases()...)
	all = append(all, attachmentCases()...)
	all = append(all, attachmentRecordCases()...)
	all = append(all, stateCases()...)
	all = append(all, simulatorCases()...)
	return all
}

// TestParity runs all cases against the cloud, and compares its answers with the recorded answers of a real cloud.
func TestParity(t *testing.T) {
	bed := openSelected(t)
	if *update && !bed.Real {
		t.Fatal("-update records a real cloud; give it with -bed")
	}
	bed.fence(t)
	bed.suite = t
	t.Cleanup(func() {
		if left := bed.leftovers(t); len(left) > 0 {
			t.Errorf("the suite left volumes behind: %v", left)
		}
	})
	only := simulatorOnly(t)
	for i, c := range cases() {
		if i%*every != 0 {
			continue
		}
		if bed.Real && only[c.Name] != "" {
			continue // simulatoronly.txt names the reason
		}
		t.Run(c.Name, func(t *testing.T) {
			if bed.lacks(c.Call) {
				t.Skipf("the release does not have microversion %s", c.Call.Microversion)
			}
			bed.run(t, c, only[c.Name] == "")
		})
	}
}

// run runs a case and compares the answer with the recorded one, if a real cloud has given one.
func (b *Bed) run(t *testing.T, c Case, recorded bool) {
	b.running = c
	a := c.Run(t, b)
	if a.Request.Call != c.Call || a.Request.As != c.As {
		t.Fatalf("the case is about %+v as %s and asked %+v as %s", c.Call, c.As, a.Request.Call, a.Request.As)
	}
	if !*update {
		a.want(t, b.statusOf(t, c))
	}
	checkHeaders(t, a)
	if recorded {
		compare(t, b, c, a)
	}
}

// checkHeaders checks the headers that every answer of a service has.
func checkHeaders(t *testing.T, a Answer) {
	t.Helper()
	if a.Request.Call.Path == "/" {
		return // version documents are served in front of the API
	}
	if id := a.Header.Get("X-Openstack-Request-Id"); !strings.HasPrefix(id, "req-") {
		t.Errorf("the answer has request id %q; people need it to find the request in the cloud's logs", id)
	}
	name := microversionName[a.Request.Call.Service]
	served := a.Status != http.StatusUnauthorized && a.Status != http.StatusNotAcceptable && a.Request.Call.Microversion != unreadable
	if want := name + " " + a.Request.Call.Microversion; name != "" && a.Request.Call.Microversion != "" && served {
		if got := a.Header.Get("OpenStack-API-Version"); got != want {
			t.Errorf("the answer is of API version %q, want %q", got, want)
		}
	}
}

// compare compares an answer with the recording of the real cloud.
func compare(t *testing.T, bed *Bed, c Case, a Answer) {
	t.Helper()
	got := testenv.Value(bed.record(a).text())(t)
	if *update {
		bed.keep(t, c, got)
		return
	}
	want, err := os.ReadFile(bed.expected(c))
	if err != nil {
		t.Fatalf("nothing was recorded for this case; run it with -bed DIR -update: %v", err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("the answer differs from a real cloud's (-recorded +got):\n%s", diff)
	}
}

// keep writes a recording. That of another release is kept only if it differs from that of Zed.
func (b *Bed) keep(t *testing.T, c Case, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", "shapes", c.slug()+".json")
	if b.release != "" {
		zed := testfile.Read(t, file)
		file = b.own(c)
		if bytes.Equal(zed, got) {
			if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			return
		}
		testenv.Must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	}
	testfile.Write(t, file, got, 0o644)
}
