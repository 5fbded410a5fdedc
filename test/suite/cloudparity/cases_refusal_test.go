package cloudparity

import (
	"net/http"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// unsupported are microversions that no bed has.
var unsupported = map[string]string{"block-storage": "3.999", "compute": "2.999"}

// Microversions at which a call does not exist.
const (
	unreadable       = "banana"
	beforeMessages   = "3.2"
	beforeGroupTypes = "3.10"
)

// refusalCases are the refusals that every call has. The token is missing or forged, the access rules do not name the call, or the cloud
// does not have or cannot read the microversion.
func refusalCases() []Case {
	var all []Case
	for _, call := range calls() {
		if unsupported[call.Service] == "" || call.Path == "/" {
			continue // Keystone's own calls, and version documents, ask for no token
		}
		name := title(call)
		refusal := func(why string, call cloud.Call, status int, as Role) {
			all = append(all, Case{Name: name + " " + why, Call: call, Status: status, As: as, Run: func(t *testing.T, b *Bed) Answer {
				return b.do(t, blank(call, as))
			}})
		}
		refusal("without a token", call, http.StatusUnauthorized, Nobody)
		refusal("with a token nobody gave", call, http.StatusUnauthorized, Forger)
		refusal("beyond the access rules", call, http.StatusUnauthorized, Fenced)
		if call.Microversion == "" {
			refusal("at a microversion too high", at(call, unsupported[call.Service]), http.StatusNotAcceptable, Member)
			refusal("at no microversion", at(call, unreadable), http.StatusBadRequest, Member)
		}
	}
	return all
}

// title names a call in the names of cases.
func title(c cloud.Call) string {
	path := strings.NewReplacer("{", "", "}", "", "/", " ").Replace(c.Path)
	return strings.Join(strings.Fields(c.Service+" "+c.Method+path+" "+c.Microversion), " ")
}

// blank is a request that the service refuses before it reads the objects that the request names.
func blank(call cloud.Call, as Role) Request {
	r := Request{Call: call, As: as, Of: Member}
	for range variable.FindAllString(call.Path, -1) {
		r.IDs = append(r.IDs, nothing)
	}
	if call.Method == http.MethodPost {
		r.Body = object{}
	}
	return r
}
