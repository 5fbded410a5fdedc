package cloud

import (
	"errors"
	"fmt"
	"net/http"
)

// errRedirect is why a request that got a redirect failed.
var errRedirect = errors.New("the redirect is not followed")

// checkRedirect allows a redirect only for GET and HEAD, within one scheme and one host. net/http would repeat the token header
// anywhere on the same host, also without encryption. It would do the same with the password of a login.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from, to := via[0], req.URL.Scheme+"://"+req.URL.Host
	switch {
	case from.Method != http.MethodGet && from.Method != http.MethodHead:
		return fmt.Errorf("the server redirects a %s to %s; %w: the client sends credentials and changes only to the configured address", from.Method, Clean(to), errRedirect)
	case req.URL.Scheme != from.URL.Scheme || req.URL.Host != from.URL.Host:
		return fmt.Errorf("the server redirects the request to %s; %w: the client sends credentials only to %s://%s", Clean(to), errRedirect, from.URL.Scheme, from.URL.Host)
	case len(via) >= 10:
		return fmt.Errorf("the server redirects the request more than 10 times; %w", errRedirect)
	}
	return nil
}
