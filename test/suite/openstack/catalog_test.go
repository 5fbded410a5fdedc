//go:build openstack

package openstack

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// newCatalogProxy starts a proxy before Keystone and returns its auth URL. Each login there gets the services of the catalog as edit returns them.
func newCatalogProxy(t *testing.T, authURL string, edit func(services []any) []any) string {
	t.Helper()
	target := testenv.Value(url.Parse(authURL))(t)
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	proxy.ModifyResponse = func(resp *http.Response) error {
		if resp.Request.Method != http.MethodPost || !strings.HasSuffix(resp.Request.URL.Path, "/auth/tokens") {
			return nil
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		var answer map[string]map[string]any
		if json.Unmarshal(body, &answer) == nil && answer["token"] != nil { // no refusal
			services, _ := answer["token"]["catalog"].([]any)
			answer["token"]["catalog"] = edit(services)
			body, _ = json.Marshal(answer)
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	server := httptest.NewServer(proxy)
	t.Cleanup(server.Close)
	return server.URL + target.Path
}

// moveEndpoints lets move change the URL of each endpoint.
func moveEndpoints(services []any, move func(*url.URL)) {
	for _, s := range services {
		endpoints, _ := s.(map[string]any)["endpoints"].([]any)
		for _, e := range endpoints {
			endpoint := e.(map[string]any)
			if u, err := url.Parse(endpoint["url"].(string)); err == nil {
				move(u)
				endpoint["url"] = u.String()
			}
		}
	}
}
