package partial

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// kind is one kind of request: a request of the driver's table, with what distinguishes its uses.
type kind struct {
	Call    cloud.Call
	Filters string // of a listing, in order: "name", "updated_at"
	Action  string // of a POST to …/action: "os-extend"
}

// paging are the query parameters that choose a page, not the objects.
var paging = []string{"limit", "marker", "offset", "sort", "sort_key", "sort_dir", "with_count", "all_tenants"}

// kindOf returns the kind of a request to Cinder or Nova. It reports false for a request to Keystone or to a version document, and for a
// request that is not in the driver's table.
func kindOf(r *http.Request, body []byte) (kind, bool) {
	_, version, _ := strings.Cut(r.Header.Get("OpenStack-API-Version"), " ")
	return kindAt(r, body, serviceOf(r), func(call cloud.Call) bool { return call.Microversion == version })
}

func serviceOf(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, "/compute/") {
		return "compute"
	}
	return "block-storage"
}

// kindAt is kindOf for the requests of the driver's table that a caller accepts.
func kindAt(r *http.Request, body []byte, service string, accepts func(cloud.Call) bool) (kind, bool) {
	for _, call := range openstack.Calls {
		if call.Service == service && accepts(call) && call.Is(r.Method, r.URL.Path, call.Microversion) && variablesAreIDs(call, r.URL.Path) {
			return kind{Call: call, Filters: filters(r.URL.Query()), Action: action(call, body)}, true
		}
	}
	return kind{}, false
}

var id = regexp.MustCompile(`^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$`)

// variablesAreIDs distinguishes /volumes/{id} from /volumes/detail.
func variablesAreIDs(call cloud.Call, path string) bool {
	want, got := strings.Split(call.Path, "/"), strings.Split(path, "/")
	got = got[len(got)-len(want):]
	for i, segment := range want {
		if strings.HasPrefix(segment, "{") && segment != "{key}" && !id.MatchString(got[i]) {
			return false
		}
	}
	return true
}

func filters(query url.Values) string {
	var names []string
	for name := range query {
		if !slices.Contains(paging, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, "&")
}

func action(call cloud.Call, body []byte) string {
	var named map[string]json.RawMessage
	if !strings.HasSuffix(call.Path, "/action") || json.Unmarshal(body, &named) != nil {
		return ""
	}
	for name := range named {
		return name
	}
	return ""
}

func (k kind) String() string {
	text := k.Call.Method + " " + k.Call.Path
	if k.Filters != "" {
		text += "?" + k.Filters
	}
	if k.Action != "" {
		text += " " + k.Action
	}
	if k.Call.Microversion != "" {
		text += " (" + k.Call.Microversion + ")"
	}
	return text
}

func (k kind) writes() bool { return k.Call.Method != http.MethodGet }

// filters says whether the query chooses objects. The usage of quotas is no filter.
func (k kind) filters() bool { return k.lists() && k.Filters != "" }

// lists says whether the answer is a collection.
func (k kind) lists() bool {
	last := k.Call.Path[strings.LastIndexByte(k.Call.Path, '/')+1:]
	return !k.writes() && !strings.HasPrefix(last, "{") && last != "default"
}

// pages says whether the collection comes in pages. Zones and a server's attachments come whole.
func (k kind) pages() bool {
	return k.lists() && k.Call.Path != "/os-availability-zone" && k.Call.Service == "block-storage"
}

// names says whether the path names an object.
func (k kind) names() bool {
	return strings.Contains(k.Call.Path, "{") && k.Call.Path != "/os-quota-sets/{project}"
}

// timeout is how long the driver waits for an answer (driver/openstack).
func (k kind) timeout() (limit cloudTime) {
	if k.writes() {
		return 2 * minute
	}
	return 30 * second
}
