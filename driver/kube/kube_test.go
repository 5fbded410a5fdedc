package kube

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// pod is the service account of a pod in a cluster whose API is served by handler: its options and its directory.
func pod(t *testing.T, handler http.HandlerFunc) (Options, string) {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	write(t, dir, "ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	write(t, dir, "token", "first\n")
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KUBERNETES_SERVICE_HOST": at.Hostname(), "KUBERNETES_SERVICE_PORT": at.Port()}
	return Options{Dir: dir, Env: func(key string) string { return env[key] }}, dir
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	testfile.Write(t, filepath.Join(dir, file), text, 0o600)
}

func TestRequestsNameTheDriverToTheAuditLog(t *testing.T) {
	for version, want := range map[string]string{"v1.2.3": "cinder-csi-driver/v1.2.3", "": "cinder-csi-driver/unknown"} {
		var got testenv.Asked
		o, _ := pod(t, func(w http.ResponseWriter, r *http.Request) {
			got.Add(r.UserAgent())
			_, _ = w.Write([]byte(`{}`))
		})
		o.Version = version
		api, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := api.Annotations(t.Context(), "shop", "data"); err != nil {
			t.Error(err)
		}
		if err := api.get(t.Context(), "node", "/api/v1/nodes/n", &struct{}{}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{want, want}, got.All()); diff != "" {
			t.Errorf("version %q: user agents, -want +got\n%s", version, diff)
		}
	}
}

func TestAnnotationsAreReadWithTheTokenAsItIsNow(t *testing.T) {
	var asked testenv.Asked
	o, dir := pod(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(r.Method + " " + r.URL.Path + " " + r.Header.Get("Authorization"))
		if !strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadata") {
			t.Errorf("the whole object is asked for: %q", r.Header.Get("Accept"))
		}
		_, _ = w.Write([]byte(`{"kind": "PartialObjectMetadata", "metadata": {"name": "data", "annotations": {"a": "b"}}}`))
	})
	api, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{"first", "second"} {
		write(t, dir, "token", token)
		got, err := api.Annotations(t.Context(), "shop", "data")
		if diff := cmp.Diff(map[string]string{"a": "b"}, got); err != nil || diff != "" {
			t.Errorf("%v, -want +got\n%s", err, diff)
		}
	}
	want := []string{
		"GET /api/v1/namespaces/shop/persistentvolumeclaims/data Bearer first",
		"GET /api/v1/namespaces/shop/persistentvolumeclaims/data Bearer second",
	}
	if diff := cmp.Diff(want, asked.All()); diff != "" {
		t.Error("requests, -want +got\n", diff)
	}
}

func TestARedirectOfTheAPICarriesNoTokenAnywhere(t *testing.T) {
	var asked atomic.Int32
	o, dir := pod(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	write(t, dir, "token", "secret")
	api, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.Annotations(t.Context(), "shop", "data"); err == nil || asked.Load() != 1 {
		t.Errorf("%d requests, error %v", asked.Load(), err)
	}
}

func TestAnswersOfTheAPIHaveTheirKind(t *testing.T) {
	code, text := 0, ""
	o, _ := pod(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code); _, _ = w.Write([]byte(text)) })
	api, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for answer, want := range map[int]volume.Kind{
		200: volume.Unavailable, 401: volume.PermissionDenied, 403: volume.PermissionDenied, 404: volume.NotFound, 429: volume.Unavailable, 500: volume.Unavailable,
	} {
		code, text = answer, "no JSON"
		_, err := api.Annotations(t.Context(), "shop", "data")
		if volume.KindOf(err) != want || err == nil || !strings.Contains(err.Error(), "claim shop/data") || strings.Contains(err.Error(), "first") {
			t.Errorf("%d: want %s, got %v", answer, want, err)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := api.Annotations(gone, "shop", "data"); !volume.Is(err, volume.Canceled) {
		t.Errorf("a caller that left: %v", err)
	}
	api.server = "https://127.0.0.1:1"
	if _, err := api.Annotations(t.Context(), "shop", "data"); !volume.Is(err, volume.Unavailable) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestWhatCannotBeAClaimIsNeverAskedFor(t *testing.T) {
	o, _ := pod(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("asked for %s", r.URL) })
	api, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "..", "a/b", "A", "a?b", "a%2fb", "-a"} {
		for _, pair := range [][2]string{{bad, "data"}, {"shop", bad}} {
			if _, err := api.Annotations(t.Context(), pair[0], pair[1]); !volume.Is(err, volume.InvalidArgument) {
				t.Errorf("%q: got %v", pair, err)
			}
		}
	}
}

func TestAnAPIThatCannotBeIsAnErrorAtOnce(t *testing.T) {
	good, dir := pod(t, nil)
	none := func(string) string { return "" }
	for name, o := range map[string]Options{
		"no pod":       {Dir: dir, Env: none},
		"no authority": {Dir: t.TempDir(), Env: good.Env},
		"no URL":       {Dir: dir, Env: none, Server: "10.0.0.1:6443"},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: want an error", name)
		}
	}
	write(t, dir, "ca.crt", "no certificate")
	if _, err := New(good); err == nil {
		t.Error("no certificate: want an error")
	}
}

// kubectl proxy and its like want no token.
func TestAProxyIsAskedWithoutAToken(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("it got a token")
		}
		_, _ = w.Write([]byte(`{"metadata": {}}`))
	}))
	defer server.Close()
	dir := t.TempDir()
	write(t, dir, "token", "never in the clear")
	api, err := New(Options{Server: server.URL + "/", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := api.Annotations(t.Context(), "shop", "data"); err != nil || len(got) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

// The proxy in a pod's environment is there for OpenStack.
func TestTheOwnClusterIsAskedWithoutAProxy(t *testing.T) {
	o, _ := pod(t, nil)
	for server, want := range map[string]bool{"": false, "https://api.example.com": true} {
		o.Server = server
		api, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := api.client.Transport.(*http.Transport).Proxy != nil; got != want {
			t.Errorf("API %q: a proxy is looked for: %t, want %t", server, got, want)
		}
	}
}
