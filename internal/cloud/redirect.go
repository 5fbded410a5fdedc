package cloud

import (
	"errors"
	"fmt"
	"net/http"
)

// errRedirect is the reason of a request that ended at a redirect.
var errRedirect = errors.New("the redirect is not followed")

// checkRedirect follows a redirect only of a request that reads, and only within one scheme and one host: net/http would repeat the
// token's header anywhere on the same host, also without encryption, and the password of a login with it.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from, to := via[0], req.URL.Scheme+"://"+req.URL.Host
	switch {
	case from.Method != http.MethodGet && from.Method != http.MethodHead:
		return fmt.Errorf("a %s is redirected to %s; %w: credentials and changes go only to the configured address", from.Method, Clean(to), errRedirect)
	case req.URL.Scheme != from.URL.Scheme || req.URL.Host != from.URL.Host:
		return fmt.Errorf("the request is redirected to %s; %w: credentials go only to %s://%s", Clean(to), errRedirect, from.URL.Scheme, from.URL.Host)
	case len(via) >= 10:
		return fmt.Errorf("the request is redirected more than 10 times; %w", errRedirect)
	}
	return nil
}
