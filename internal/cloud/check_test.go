package cloud

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestEachFailureOfACloudHasAKind(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(&keystone{})
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(&keystone{})
	t.Cleanup(plain.Close)
	refusing := func(status int) Settings { return (&keystone{status: status}).serve(t) }
	at := func(url string) Settings {
		return Settings{Name: "test", AuthURL: url + "/v3", UserID: "u", Password: "p", ProjectID: "p"}
	}
	for name, c := range map[string]struct {
		settings Settings
		want     string
	}{
		"nobody listens":        {at("http://127.0.0.1:1"), FailureConnection}, // a port that the kernel gives to nobody
		"an unknown authority":  {at(secure.URL), FailureTLS},
		"https to a plain port": {at(strings.Replace(plain.URL, "http:", "https:", 1)), FailureTLS},
		"HTTP 401":              {refusing(401), FailureCredentials},
		"HTTP 403":              {refusing(403), FailureCredentials},
		"HTTP 503":              {refusing(503), FailureServer},
		"HTTP 429":              {refusing(429), FailureServer},
		"no Keystone":           {refusing(404), FailureConfiguration},
	} {
		_, err := Connect(t.Context(), c.settings, Options{})
		if got := FailureOf(err); got != c.want {
			t.Errorf("%s: want %s, got %q of %v", name, c.want, got, err)
		}
	}
	if got := FailureOf(nil); got != "" {
		t.Errorf("no error is a %s", got)
	}
}

func TestAServiceAnswersWhateverItThinksOfARequestWithoutAToken(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusUnauthorized)
	var path atomic.Value
	k := &keystone{catalog: catalog(), other: func(w http.ResponseWriter, r *http.Request) {
		path.Store(r.URL.Path)
		if r.Header.Get("X-Auth-Token") != "" {
			t.Error("the check sends the token")
		}
		w.WriteHeader(int(status.Load()))
	}}
	c, err := Connect(t.Context(), k.serve(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for service, want := range map[string]string{"block-storage": "/volume/v3/", "compute": "/compute/v2.1/"} {
		for code, failure := range map[int]string{200: "", 300: "", 401: "", 404: FailureServer, 500: FailureServer, 503: FailureServer} {
			status.Store(int32(code))
			if err := c.PingService(t.Context(), service); FailureOf(err) != failure || path.Load() != want {
				t.Errorf("%s answers %d at %s: want %q at %s, got %v", service, code, path.Load(), failure, want, err)
			}
		}
	}
	if err := c.PingService(t.Context(), "dns"); !errors.Is(err, ErrNoService) || FailureOf(err) != FailureConfiguration {
		t.Errorf("a service that the catalog lacks: %v", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := c.PingService(ended, "compute"); FailureOf(err) != FailureConnection {
		t.Errorf("no answer in time: %v", err)
	}
}

// bodies counts the answers whose body nobody has closed: each holds its connection.
type bodies struct{ open atomic.Int32 }

type body struct {
	io.ReadCloser
	close func()
}

func (b body) Close() error { b.close(); return b.ReadCloser.Close() }

func (b *bodies) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err == nil {
		b.open.Add(1)
		resp.Body = body{resp.Body, sync.OnceFunc(func() { b.open.Add(-1) })}
	}
	return resp, err
}

func TestTheBodyOfEachAnswerIsClosed(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 404, 500} {
		k := &keystone{catalog: catalog(), other: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"versions": [{"id": "v3.0"}], "token": {}}`)
		}}
		answers := &bodies{}
		c, err := Connect(t.Context(), k.serve(t), Options{Transport: answers})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.discover(t.Context(), "block-storage", c.AuthURL(), []string{"v3"})
		_, _ = c.Expiry(t.Context())
		_ = c.PingService(t.Context(), "compute")
		_ = c.Ping(t.Context())
		if open := answers.open.Load(); open != 0 {
			t.Errorf("HTTP %d: %d bodies stay open", status, open)
		}
	}
}

func TestTheExpiryOfKeystoneHasSeveralForms(t *testing.T) {
	t.Parallel()
	want := time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, text := range []string{"2027-03-01T12:00:00.000000", "2027-03-01T12:00:00.000000Z", "2027-03-01T12:00:00"} {
		if got := expiryOf(text); !got.Equal(want) {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, text := range []string{"", "soon"} {
		if got := expiryOf(text); !got.IsZero() {
			t.Errorf("%q: %s", text, got)
		}
	}
}

// A login by password shows the end of the password in its token (Identity API, "Password authentication").
func TestAPasswordExpiresWhenTheTokenSaysSo(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{"2027-03-01T12:00:00.000000": time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC), "": {}} {
		k := &keystone{catalog: catalog(), passwordExpires: text}
		k.other = func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v3/auth/tokens" || r.Method != http.MethodGet || r.Header.Get("X-Subject-Token") == "" {
				t.Errorf("%s %s", r.Method, r.URL)
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"token": {}}`))
		}
		c, err := Connect(t.Context(), k.serve(t), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if at, err := c.Expiry(t.Context()); err != nil || !at.Equal(want) {
			t.Errorf("%q: want %s, got %s, %v", text, want, at, err)
		}
	}
}
