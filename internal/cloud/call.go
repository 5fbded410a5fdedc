package cloud

import "strings"

// Call is one kind of request that a package sends to a cloud: data for documents, access rules of application credentials, and
// for the test suite that holds the simulated cloud to the real one.
type Call struct {
	Service      string // catalog type: "compute", "block-storage", "identity"
	Method       string
	Path         string // below the versioned endpoint, variables in braces: "/volumes/{id}"
	Microversion string // empty means the service's base version
}

// Is reports whether a request is of this kind: its method, the end of its URL's path, and the microversion it asks for (without
// the service's name, empty where it asks for none). The service is for the caller to tell by the URL's beginning.
func (c Call) Is(method, path, microversion string) bool {
	if method != c.Method || microversion != c.Microversion {
		return false
	}
	want := strings.Split(strings.Trim(c.Path, "/"), "/")
	got := strings.Split(strings.Trim(path, "/"), "/")
	if len(got) < len(want) {
		return false
	}
	for i, segment := range got[len(got)-len(want):] {
		if segment != want[i] && !strings.HasPrefix(want[i], "{") {
			return false
		}
	}
	return true
}
