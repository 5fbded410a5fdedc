package cloud

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"
)

// keystone answers logins with a catalog and everything else with what a test puts in.
type keystone struct {
	status  int
	catalog []map[string]any
	other   http.HandlerFunc
	// passwordExpires is what the token says about the password of the user; empty: nothing.
	passwordExpires string

	mu     sync.Mutex
	logins []map[string]any
	agents []string
}

func service(kind string, endpoints ...map[string]any) map[string]any {
	return map[string]any{"type": kind, "endpoints": endpoints}
}

func endpoint(region, iface, url string) map[string]any {
	return map[string]any{"region": region, "region_id": region, "interface": iface, "url": url}
}

func (k *keystone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v3/auth/tokens" || r.Method != http.MethodPost {
		k.other(w, r)
		return
	}
	var login map[string]any
	_ = json.NewDecoder(r.Body).Decode(&login)
	k.mu.Lock()
	k.logins = append(k.logins, login)
	k.agents = append(k.agents, r.UserAgent())
	number := len(k.logins)
	k.mu.Unlock()
	if k.status != 0 {
		w.WriteHeader(k.status)
		_, _ = io.WriteString(w, `{"error": {"message": "s3cret details"}}`)
		return
	}
	w.Header().Set("X-Subject-Token", "token-"+string(rune('0'+number)))
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"token": map[string]any{
		"expires_at": "2099-01-01T00:00:00.000000Z", "user": map[string]any{"id": "u", "password_expires_at": k.passwordExpires}, "project": map[string]any{"id": "p1", "name": "demo"}, "catalog": k.catalog,
	}})
}

func (k *keystone) serve(t *testing.T) Settings {
	t.Helper()
	server := httptest.NewServer(k)
	t.Cleanup(server.Close)
	for _, s := range k.catalog {
		for _, e := range s["endpoints"].([]map[string]any) {
			e["url"] = strings.Replace(e["url"].(string), "http://here", server.URL, 1)
		}
	}
	return Settings{Name: "test", AuthURL: server.URL + "/v3", UserID: "u", Password: "s3cret", ProjectID: "p1"}
}

func catalog() []map[string]any {
	return []map[string]any{
		service("identity", endpoint("R1", "public", "http://here/")),
		service("volume", endpoint("R1", "public", "http://here/v1/p1")),
		service("volumev3", endpoint("R1", "internal", "http://here/inside/v3/p1"), endpoint("R1", "public", "http://here/volume/v3/p1"),
			endpoint("R2", "public", "http://here/two/v3/p1")),
		service("compute", endpoint("R1", "public", "http://here/compute/v2.1")),
	}
}

func TestClientsUseTheEndpointOfRegionAndInterface(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change  func(*Settings)
		service string
		want    string
	}{
		"alias":             {func(*Settings) {}, "block-storage", "/volume/v3/p1/"},
		"compute":           {func(*Settings) {}, "compute", "/compute/v2.1/"},
		"identity":          {func(*Settings) {}, "identity", "/v3/"},
		"region":            {func(s *Settings) { s.Region = "R2" }, "block-storage", "/two/v3/p1/"},
		"interface":         {func(s *Settings) { s.Interface = "internalURL" }, "block-storage", "/inside/v3/p1/"},
		"override by alias": {func(s *Settings) { s.Endpoints = map[string]string{"volumev3": "http://mine/v3/p1"} }, "block-storage", "http://mine/v3/p1/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &keystone{catalog: catalog()}
			s := k.serve(t)
			tc.change(&s)
			c, err := Connect(t.Context(), s, Options{UserAgent: []string{"cinder-csi-driver/1.2"}})
			if err != nil {
				t.Fatal(err)
			}
			client, err := c.Client(tc.service, "3.47")
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimPrefix(client.Endpoint, strings.TrimSuffix(s.AuthURL, "/v3")); got != tc.want {
				t.Errorf("endpoint %s, want %s", got, tc.want)
			}
			other, _ := c.Client(tc.service, "")
			if client.Microversion != "3.47" || other.Microversion != "" {
				t.Errorf("microversions %q and %q share a client", client.Microversion, other.Microversion)
			}
			if c.ProjectID() != "p1" {
				t.Errorf("project %q", c.ProjectID())
			}
			if !strings.HasPrefix(k.agents[0], "cinder-csi-driver/1.2 gophercloud/") {
				t.Errorf("User-Agent %q", k.agents[0])
			}
		})
	}
}

func TestAnUnversionedEndpointIsAskedForItsVersionsOnce(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	k := &keystone{
		catalog: []map[string]any{
			service("block-storage", endpoint("R1", "public", "http://here/volume")), service("compute", endpoint("R1", "public", "http://here/compute/")),
		},
		other: func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			switch r.URL.Path {
			case "/volume/":
				w.WriteHeader(http.StatusMultipleChoices)
				_, _ = io.WriteString(w, `{"versions": [{"id": "v2.0"}, {"id": "v3.0", "links": [{"rel": "self", "href": "http://inside:8776/v3/"}]}]}`)
			case "/compute/":
				_, _ = io.WriteString(w, `{"versions": [{"id": "v2.0"}, {"id": "v2.1"}]}`)
			default:
				t.Errorf("asked for %s", r.URL)
			}
		},
	}
	s := k.serve(t)
	c, err := Connect(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]string{"block-storage": "/volume/v3/p1/", "compute": "/compute/v2.1/"} {
		for range 3 {
			client, err := c.Client(service, "")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(client.Endpoint, want) {
				t.Errorf("%s at %s, want %s", service, client.Endpoint, want)
			}
		}
	}
	if asked.Load() != 2 {
		t.Errorf("%d questions, want one for each service", asked.Load())
	}
}

// One version alone shows whether the driver has read it.
func TestAVersionCountsOnlyIfTheServiceHasIt(t *testing.T) {
	t.Parallel()
	for versions, want := range map[string]string{`{"id": "v3.0"}`: "/volume/v3/p1/", `{"id": "v2.0"}`: "", `{"id": "v30"}`: "", ``: ""} {
		k := &keystone{
			catalog: []map[string]any{service("block-storage", endpoint("R1", "public", "http://here/volume"))},
			other:   func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"versions": [`+versions+`]}`) },
		}
		c, err := Connect(t.Context(), k.serve(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		client, err := c.Client("block-storage", "")
		if want == "" && !errors.Is(err, ErrNoService) || want != "" && (err != nil || !strings.HasSuffix(client.Endpoint, want)) {
			t.Errorf("%s: %v", versions, err)
		}
	}
}

func TestAServiceThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	k := &keystone{catalog: []map[string]any{service("volumev2", endpoint("R1", "public", "http://here/v2/p1")), service("volume", endpoint("R1", "public", "http://here/v2/p1"))}}
	c, err := Connect(t.Context(), k.serve(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Client("block-storage", ""); !errors.Is(err, ErrNoService) || !strings.Contains(err.Error(), "block-storage") {
		t.Errorf("error %v", err)
	}
}

func TestLoginFailuresHaveDistinctErrors(t *testing.T) {
	t.Parallel()
	answering := func(status int) func(*testing.T) Settings {
		return func(t *testing.T) Settings { return (&keystone{status: status}).serve(t) }
	}
	handler := func(h http.HandlerFunc) func(*testing.T) Settings {
		return func(t *testing.T) Settings {
			server := httptest.NewServer(h)
			t.Cleanup(server.Close)
			return Settings{Name: "test", AuthURL: server.URL, UserID: "u", Password: "s3cret", ProjectID: "p"}
		}
	}
	for name, tc := range map[string]struct {
		settings func(*testing.T) Settings
		is       error
		says     string
	}{
		"wrong password": {answering(401), ErrUnauthorised, "refuses the credentials of user u"},
		"forbidden":      {answering(403), ErrUnauthorised, "HTTP 403"},
		"down":           {answering(503), ErrUnreachable, "HTTP 503"},
		"too many":       {answering(429), ErrUnreachable, "HTTP 429"},
		"not Keystone":   {answering(404), ErrMisconfigured, "not Keystone v3"},
		"a web page":     {handler(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); _, _ = io.WriteString(w, "<html>") }), ErrMisconfigured, "not Keystone v3"},
		"no project": {handler(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Subject-Token", "t")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, `{"token": {"catalog": []}}`)
		}), ErrMisconfigured, "for no project"},
		"a project without an ID": {handler(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Subject-Token", "t")
			w.WriteHeader(201)
			_, _ = io.WriteString(w, `{"token": {"project": {"id": "", "name": "demo"}, "catalog": []}}`)
		}), ErrMisconfigured, "for no project"},
		"nobody there": {func(t *testing.T) Settings {
			s := answering(401)(t)
			s.AuthURL = "http://127.0.0.1:1"
			return s
		}, ErrUnreachable, "connection refused"},
		"unknown region": {func(t *testing.T) Settings {
			s := (&keystone{catalog: catalog()}).serve(t)
			s.Region = "Mars"
			return s
		}, ErrMisconfigured, `no region "Mars"; it has R1, R2`},
		"missing CA": {func(t *testing.T) Settings {
			s := answering(401)(t)
			s.CACertFile = "/nonexistent.pem"
			return s
		}, ErrBadFile, "/nonexistent.pem"},
		"CA of another": {func(t *testing.T) Settings {
			server := httptest.NewTLSServer(&keystone{})
			t.Cleanup(server.Close)
			return Settings{Name: "test", AuthURL: server.URL, UserID: "u", Password: "s3cret", ProjectID: "p"}
		}, ErrUnreachable, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Connect(t.Context(), tc.settings(t), Options{})
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %q, want %q with %q", err, tc.is, tc.says)
			}
			if err != nil && (strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "\n")) {
				t.Errorf("not one sentence without secrets: %q", err)
			}
		})
	}
}

func TestACanceledLoginSaysSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Connect(ctx, (&keystone{}).serve(t), Options{})
	if !errors.Is(err, ErrUnreachable) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want unreachable because canceled", err)
	}
}

func TestTLSFollowsTheSettings(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(&keystone{catalog: []map[string]any{}})
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Settings{Name: "test", AuthURL: server.URL, UserID: "u", Password: "p", ProjectID: "p"}
	for name, change := range map[string]func(*Settings){
		"its CA":       func(s *Settings) { s.CACertFile = ca },
		"not verified": func(s *Settings) { s.Insecure = true },
	} {
		changed := s
		change(&changed)
		c, err := Connect(t.Context(), changed, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.Close()
	}
	transport, err := newTransport(s)
	if err != nil {
		t.Fatal(err)
	}
	if transport.MaxIdleConnsPerHost < 100 {
		t.Errorf("%d idle connections per host; a sidecar has 100 workers", transport.MaxIdleConnsPerHost)
	}
}

func TestCredentialsBecomeKeystoneRequests(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		settings Settings
		want     string
	}{
		"password": {
			Settings{Username: "u", Password: "p", UserDomainName: "D", ProjectName: "t", ProjectDomainID: "d"},
			`{"auth":{"identity":{"methods":["password"],"password":{"user":{"domain":{"name":"D"},"name":"u","password":"p"}}},"scope":{"project":{"domain":{"id":"d"},"name":"t"}}}}`,
		},
		"one domain for both": {
			Settings{Username: "u", Password: "p", DomainID: "d", ProjectName: "t"},
			`{"auth":{"identity":{"methods":["password"],"password":{"user":{"domain":{"id":"d"},"name":"u","password":"p"}}},"scope":{"project":{"domain":{"id":"d"},"name":"t"}}}}`,
		},
		"application credential": {
			Settings{ApplicationCredentialID: "i", ApplicationCredentialSecret: "s", ProjectID: "ignored"},
			`{"auth":{"identity":{"application_credential":{"id":"i","secret":"s"},"methods":["application_credential"]}}}`,
		},
		"application credential by name": {
			Settings{ApplicationCredentialName: "n", ApplicationCredentialSecret: "s", Username: "u", UserDomainID: "d", ProjectID: "ignored"},
			`{"auth":{"identity":{"application_credential":{"name":"n","secret":"s","user":{"domain":{"id":"d"},"name":"u"}},"methods":["application_credential"]}}}`,
		},
		"trust": {
			Settings{UserID: "u", Password: "p", TrustID: "T"},
			`{"auth":{"identity":{"methods":["password"],"password":{"user":{"id":"u","password":"p"}}},"scope":{"OS-TRUST:trust":{"id":"T"}}}}`,
		},
		"token": {
			Settings{Token: "t", ProjectID: "p"},
			`{"auth":{"identity":{"methods":["token"],"token":{"id":"t"}},"scope":{"project":{"id":"p"}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &keystone{catalog: catalog()}
			tc.settings.AuthURL, tc.settings.Name = k.serve(t).AuthURL, "test"
			if _, err := Connect(t.Context(), tc.settings, Options{}); err != nil {
				t.Fatal(err)
			}
			got, _ := json.Marshal(k.logins[0])
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("login (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnExpiredTokenIsRenewedAndTheAnswerAfterItKeepsItsStatus(t *testing.T) {
	t.Parallel()
	k := &keystone{catalog: catalog(), other: func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Auth-Token") == "token-1" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}}
	c, err := Connect(t.Context(), k.serve(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.Client("compute", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Get(t.Context(), client.ServiceURL("servers", "x"), nil, nil)
	if !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Errorf("error %v, want a recognisable 404", err)
	}
	if len(k.logins) != 2 {
		t.Errorf("%d logins, want 2", len(k.logins))
	}
}

// Inventories, reports and logs have the error.
func TestARenewalThatFailsTellsNoLoginAndNoBody(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusUnauthorized, http.StatusServiceUnavailable} {
		k := &keystone{catalog: catalog(), other: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }}
		s := k.serve(t)
		s.AuthURL = strings.Replace(s.AuthURL, "http://", "http://login:gate@", 1)
		c, err := Connect(t.Context(), s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		client, err := c.Client("compute", "")
		if err != nil {
			t.Fatal(err)
		}
		at := time.Unix(1, 0)
		c.expires.Store(&at)
		k.status = status
		_, err = client.Get(t.Context(), client.ServiceURL("servers"), nil, nil)
		var renewal *gophercloud.ErrUnableToReauthenticate
		if !errors.As(err, &renewal) || !gophercloud.ResponseCodeIs(renewal.ErrReauth, status) || strings.Contains(err.Error(), "gate") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("HTTP %d: %v", status, err)
		}
	}
}

func TestTheTokenIsNotCarriedToAnotherHost(t *testing.T) {
	t.Parallel()
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s reached another host with token %q", r.URL, r.Header.Get("X-Auth-Token"))
	}))
	t.Cleanup(stranger.Close)
	k := &keystone{catalog: catalog(), other: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, stranger.URL, http.StatusFound)
	}}
	c, err := Connect(t.Context(), k.serve(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	client, _ := c.Client("compute", "")
	if _, err := client.Get(t.Context(), client.ServiceURL("servers"), nil, nil); !errors.Is(err, errRedirect) {
		t.Errorf("error %v, want one that tells of the redirect", err)
	}
}

func TestLiveLogsInOnceAndRemembersAFailureForAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var logins atomic.Int32
		var up atomic.Bool
		k := &keystone{catalog: []map[string]any{}}
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			logins.Add(1)
			if !up.Load() {
				return nil, errors.New("no route to host")
			}
			time.Sleep(time.Second) // a slow Keystone, in virtual time
			w := httptest.NewRecorder()
			k.ServeHTTP(w, r)
			return w.Result(), nil
		})
		s := Settings{Name: "test", AuthURL: "http://k", UserID: "u", Password: "p", ProjectID: "p"}
		live, err := NewLive(func() (Settings, error) { return s, nil }, LiveOptions{Options: Options{Transport: transport}})
		if err != nil {
			t.Fatal(err)
		}
		current := live.Current
		for range 10 {
			if _, err := current(t.Context()); !errors.Is(err, ErrUnreachable) {
				t.Fatalf("error %v, want unreachable", err)
			}
		}
		if logins.Load() != 1 {
			t.Errorf("%d tries at once, want 1", logins.Load())
		}
		up.Store(true)
		time.Sleep(loginPause)
		impatient, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		first := make(chan error)
		go func() { _, err := current(t.Context()); first <- err }()
		synctest.Wait()
		if _, err := current(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a waiter for another's login: %v, want its own deadline", err)
		}
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := current(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if logins.Load() != 2 {
			t.Errorf("%d logins, want one failed and one that is kept", logins.Load())
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCallIs(t *testing.T) {
	t.Parallel()
	c := Call{Service: "compute", Method: "DELETE", Path: "/servers/{server}/os-volume_attachments/{volume}", Microversion: ""}
	for path, want := range map[string]bool{
		"/compute/v2.1/servers/a/os-volume_attachments/b": true, "/v2.1/servers/a/os-volume_attachments": false, "/v2.1/servers/a/other/b": false,
		"/": false, "/servers/a/os-volume_attachments/b": true, "/a/os-volume_attachments/b": false,
	} {
		if c.Is("DELETE", path, "") != want {
			t.Errorf("%s: want %v", path, want)
		}
	}
	if slices.Contains([]bool{c.Is("GET", "/servers/a/os-volume_attachments/b", ""), c.Is("DELETE", "/servers/a/os-volume_attachments/b", "2.60")}, true) {
		t.Error("another method or microversion is not the same call")
	}
}

// The driver ends errors of this kind with the message of an event.
func TestAnErrorAboutVersionsTellsNoLoginAndNoToken(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w http.ResponseWriter, token string){
		"an echo": func(w http.ResponseWriter, token string) {
			http.Error(w, "X-Auth-Token: "+token, http.StatusBadGateway)
		},
		"no versions": func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, `{"versions": []}`) },
		"no JSON":     func(w http.ResponseWriter, _ string) { _, _ = io.WriteString(w, `<html>`) },
	} {
		k := &keystone{other: func(w http.ResponseWriter, r *http.Request) { answer(w, r.Header.Get("X-Auth-Token")) }}
		s := k.serve(t)
		k.catalog = []map[string]any{service("compute", endpoint("R1", "public", "http://login:gate@"+strings.TrimSuffix(strings.TrimPrefix(s.AuthURL, "http://"), "/v3")+"/compute/"))}
		c, err := Connect(t.Context(), s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Client("compute", "")
		if err == nil || !strings.Contains(err.Error(), "versions") || strings.Contains(err.Error(), "gate") || strings.Contains(err.Error(), "X-Auth-Token") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The paths of requests would stand in the query, and the catalog would choose what the driver asks, and whom.
func TestAnAddressOfACatalogHasNoQuery(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/compute/v2.1?x=", "/compute/v2.1#", "/compute/?", "/compute/v2.1/?a=secret"} {
		k := &keystone{}
		s := k.serve(t)
		k.catalog = []map[string]any{service("compute", endpoint("R1", "public", strings.TrimSuffix(s.AuthURL, "/v3")+path))}
		c, err := Connect(t.Context(), s, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Client("compute", ""); !errors.Is(err, ErrMisconfigured) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: want an error without the query, got %v", path, err)
		}
	}
}
