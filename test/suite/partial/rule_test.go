package partial

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// plain are the requests without which an RPC cannot do its work: each reads or changes the object itself, or finds it by its name. Every
// other request saves requests or explains something, and may fail alone. A request that is in neither list fails the test.
var plain = []string{
	"POST /volumes", "POST /volumes (3.47)", "DELETE /volumes/{id}", "GET /volumes/{id}", "GET /volumes/detail?name", "POST /volumes/{id}/metadata", "DELETE /volumes/{id}/metadata/{key}",
	"POST /volumes/{id}/action os-extend", "POST /volumes/{id}/action os-extend (3.42)", "POST /volumes/{id}/action os-retype",
	"POST /snapshots", "POST /snapshots (3.66)", "DELETE /snapshots/{id}", "GET /snapshots/{id}", "GET /snapshots/{id} (3.71)", "GET /snapshots/detail?name",
	"POST /backups (3.43)", "POST /backups (3.51)", "POST /backups/{id}/restore", "DELETE /backups/{id}", "GET /backups/{id} (3.43)", "GET /backups/detail?name (3.43)",
	"GET /attachments?volume_id (3.27)", "GET /attachments/{id} (3.27)", "DELETE /attachments/{id} (3.27)",
	"GET /servers/{id} (2.26)", "GET /servers/{server}/os-volume_attachments", "POST /servers/{server}/os-volume_attachments (2.20)",
	"POST /servers/{server}/os-volume_attachments (2.60)", "DELETE /servers/{server}/os-volume_attachments/{volume} (2.20)",
}

// whole are the RPCs whose answer is a listing or a figure: of these RPCs that listing is the plain request.
var whole = map[string][]string{
	"ListVolumes":                {"GET /volumes/detail"},
	"ListSnapshots":              {"GET /snapshots/detail", "GET /snapshots/detail?volume_id", "GET /backups/detail (3.43)", "GET /backups/detail?volume_id (3.43)"},
	"ControllerListVolumeHealth": {"GET /volumes/detail"},
	"GetCapacity":                {"GET /os-quota-sets/{project}?usage", "GET /types", "GET /types/default", "GET /os-availability-zone"},
	// Cinder says there why it could not create a volume, and so whether another zone may have room.
	"CreateVolume": {"GET /messages?resource_uuid (3.5)"},
	// A class names the new type by its name. Some releases of Cinder never end the change of a volume with snapshots.
	"ControllerModifyVolume": {"GET /types", "GET /snapshots/detail?volume_id"},
	// An incremental backup needs the backup before it, and Cinder refuses one without.
	"CreateSnapshot": {"GET /backups/detail?volume_id (3.43)", "GET /backups/detail?status&volume_id (3.43)"},
}

// spared are the requests that save other requests, or that only explain.
var spared = []string{"GET /volumes/detail", "GET /snapshots/detail", "GET /backups/detail", "GET /os-availability-zone", "GET /messages", "GET /types"}

func isPlain(s scenario, k kind) bool {
	return slices.Contains(plain, k.String()) || slices.Contains(whole[s.rpc], k.String())
}

func isListed(s scenario, k kind) bool {
	return isPlain(s, k) || slices.ContainsFunc(spared, func(prefix string) bool { return strings.HasPrefix(k.String(), prefix) })
}

// expectation is what a cell may come to.
type expectation int

const (
	succeeds   expectation = iota // like the healthy run
	retryably                     // or fails with a code that lets the sidecar retry, and names the request
	byTheTable                    // or fails with a code of test/errortable: the answer is about the object or the rights
)

// queues says whether calls wait behind one another: a server has two attach and detach requests at a time. A call waits for its turn for at
// most a minute, so that one slow server does not hold all workers of a sidecar.
func (c cell) queues() bool {
	return c.n > 2 && c.kind.writes() && c.kind.Call.Service == "compute"
}

func (c cell) expects() expectation {
	switch {
	case c.fault.name == "empty page" && isPlain(c.scenario, c.kind):
		return byTheTable // the driver cannot tell it from the truth
	case c.fault.slow && c.queues():
		return retryably
	case c.fault.slow:
		return succeeds
	case !isPlain(c.scenario, c.kind):
		return succeeds
	case c.kind.filters() && slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound}, c.fault.status):
		return succeeds // the same listing without the filter answers
	case c.fault.tellsOfTheObject(c.kind):
		return byTheTable
	}
	return retryably
}

// judge says which rules a cell breaks.
func (c cell) judge(table map[string][]codes.Code, healthy, got run) (broken []string) {
	err, want := got.worst(), status.Code(healthy.worst())
	code := status.Code(err)
	if len(got.doubled) > 0 {
		broken = append(broken, fmt.Sprintf("after a retry two objects have the same name: %v", got.doubled))
	}
	if got.hits == 0 || code == want && c.expects() != succeeds {
		return broken
	}
	switch c.expects() {
	case byTheTable:
		if code != codes.OK && !retryable(code) && !slices.Contains(table[c.scenario.rpc], code) {
			broken = append(broken, fmt.Sprintf("%s is not a code of the error table", code))
		}
	case retryably:
		if !retryable(code) {
			broken = append(broken, fmt.Sprintf("%s is final, and the fault is the cloud's", code))
		}
		if said := got.said; !c.names(said) {
			broken = append(broken, "the error does not say which request fails: "+said)
		}
	case succeeds:
		broken = append(broken, c.succeeded(healthy, got)...)
	}
	return broken
}

// succeeded holds the bounds of a success. A spared request that fails costs at most its own time once. There are at most four times as many
// requests.
func (c cell) succeeded(healthy, got run) (broken []string) {
	if want, code := status.Code(healthy.worst()), status.Code(got.worst()); code != want {
		return []string{fmt.Sprintf("want %s as on the healthy cloud, got %s in %d of %d: %s", want, code, got.failed(), c.n, got.said)}
	}
	longest, what := 3*healthy.took+c.fault.costs(c.kind, c.n), "3 times the healthy time and one failed request"
	if c.fault.slow {
		longest, what = 12*healthy.took, "12 times the healthy time"
	}
	if got.took > longest {
		broken = append(broken, fmt.Sprintf("took %v, more than %s, %v", got.took, what, longest))
	}
	if got.calls > 4*healthy.calls {
		broken = append(broken, fmt.Sprintf("sent %d requests, more than 4 times %d", got.calls, healthy.calls))
	}
	return broken
}

// names says whether an error tells which request fails and how.
func (c cell) names(text string) bool {
	signs := []string{fmt.Sprintf("HTTP %d", c.fault.status)}
	switch {
	case c.fault.status == http.StatusTooManyRequests:
		signs = append(signs, "the cloud asked for fewer requests", "the cloud asked for a pause until")
	case c.fault.after >= c.kind.timeout():
		signs = append(signs, "no usable answer", "waiting for the answer")
	case c.fault.name == "page without end":
		signs = []string{"does not end"}
	case c.fault.name == "truncated page":
		signs = []string{"no usable answer"}
	}
	if c.queues() {
		signs = append(signs, "so Nova or the host of the server is slow")
	}
	return slices.ContainsFunc(signs, func(sign string) bool { return strings.Contains(text, sign) })
}

// readTable returns the codes of each RPC that answers about an object or about rights may lead to.
func readTable(t *testing.T) map[string][]codes.Code {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "errortable", "testdata", "table.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	about := []string{"not found", "permission denied", "conflict", "busy", "exhausted", "out of range", "invalid argument"}
	table := map[string][]codes.Code{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 5 || !slices.Contains(about, fields[1]) {
			continue
		}
		for code := codes.OK; code <= codes.Unauthenticated; code++ {
			if code.String() == fields[3] {
				table[fields[0]] = append(table[fields[0]], code)
			}
		}
	}
	if len(table) < 15 {
		t.Fatalf("the error table has only %d RPCs", len(table))
	}
	return table
}
