package cloud

import "strings"

// Call is one kind of request that a package sends to a cloud. The documents, the access rules of application credentials and the
// tests that compare the simulated cloud with a real one are made from it.
type Call struct {
	Service      string // catalog type: "compute", "block-storage", "identity"
	Method       string
	Path         string // below the versioned endpoint, variables in braces: "/volumes/{id}"
	Microversion string // empty means the service's base version
}

// Is reports whether a request has this method, path and microversion. It compares the end of the path, so the caller checks the
// service by the beginning of the URL. The microversion is without the service name, and empty if the request asks for none.
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
