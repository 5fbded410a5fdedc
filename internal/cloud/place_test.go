package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var needed = []string{"block-storage", "compute"}

func TestAPlaceIsSettledForAllServicesTogether(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(s *Settings, k *keystone)
		region string
		is     error
		says   string
	}{
		"the region of the catalog":          {region: "R1"},
		"a region of the settings":           {change: func(s *Settings, _ *keystone) { s.Region = "R1" }, region: "R1"},
		"a region without compute":           {change: func(s *Settings, _ *keystone) { s.Region = "R2" }, is: ErrNoService, says: "compute"},
		"an interface without compute":       {change: func(s *Settings, _ *keystone) { s.Interface = "internal" }, is: ErrNoService, says: "compute"},
		"the expected project":               {change: func(s *Settings, _ *keystone) { s.ExpectedProject = "P-1" }, region: "R1"},
		"another project":                    {change: func(s *Settings, _ *keystone) { s.ExpectedProject = "p2" }, is: ErrOtherCloud, says: "expects project p2"},
		"services of two regions":            {change: func(_ *Settings, k *keystone) { move(k, "compute", "R2") }, is: ErrOtherCloud, says: "compute is of region R2"},
		"an override of the region in use":   {change: override("/volume/v3/p1"), region: "R1"},
		"an override of another region":      {change: override("/two/v3/p1"), is: ErrOtherCloud, says: "region R2"},
		"an override that no region has":     {change: override("/elsewhere/v3/p1"), region: "R1"},
		"an old Keystone without region IDs": {change: func(s *Settings, k *keystone) { withoutRegionIDs(k); s.Region = "R1" }, region: "R1"},
		"a version that nobody uses any more": {change: func(_ *Settings, k *keystone) {
			k.catalog = []map[string]any{service("volume", endpoint("R1", "public", "http://here/v1/p1")), service("compute", endpoint("R1", "public", "http://here/compute/v2.1"))}
		}, is: ErrNoService, says: "block-storage"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := &keystone{catalog: catalog()}
			s := k.serve(t)
			if test.change != nil {
				test.change(&s, k)
			}
			c, err := Connect(t.Context(), s, Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := c.place(needed)
			if !errors.Is(err, test.is) || err != nil && !strings.Contains(err.Error(), test.says) || err == nil && (p.region != test.region || p.project != "p1") {
				t.Errorf("got %+v, %v", p, err)
			}
			if same := c.CheckPlace(needed...); fmt.Sprint(same) != fmt.Sprint(err) {
				t.Errorf("the generator says %v, and the driver %v", same, err)
			}
		})
	}
}

func override(path string) func(*Settings, *keystone) {
	return func(s *Settings, _ *keystone) {
		s.Endpoints = map[string]string{"block-storage": strings.TrimSuffix(s.AuthURL, "/v3") + path}
	}
}

func eachEndpoint(k *keystone, of string, change func(e map[string]any)) {
	for _, s := range k.catalog {
		for _, e := range s["endpoints"].([]map[string]any) {
			if of == "" || s["type"] == of {
				change(e)
			}
		}
	}
}

func move(k *keystone, service, region string) {
	eachEndpoint(k, service, func(e map[string]any) { e["region"], e["region_id"] = region, region })
}

func withoutRegionIDs(k *keystone) {
	eachEndpoint(k, "", func(e map[string]any) { delete(e, "region_id") })
}

// liveOn is a Live on a Keystone, logged in.
func liveOn(t *testing.T, k *keystone, o LiveOptions) (*Live, *readable, *Cloud) {
	t.Helper()
	from := &readable{settings: k.serve(t)}
	o.Services = needed
	live, err := NewLive(from.read, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := live.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return live, from, c
}

// A login that has no versioned address and whose service does not answer is no better than the one in use.
func TestALoginWhoseServiceDoesNotAnswerDoesNotReplaceOneInUse(t *testing.T) {
	t.Parallel()
	k := &keystone{catalog: catalog(), other: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }}
	live, from, first := liveOn(t, k, LiveOptions{})
	eachEndpoint(k, "compute", func(e map[string]any) { e["url"] = strings.TrimSuffix(e["url"].(string), "/v2.1") })
	from.settings.Password = "s3cret-2"
	if changed, err := live.Reload(t.Context()); changed || !errors.Is(err, ErrUnreachable) {
		t.Errorf("%t, %v", changed, err)
	}
	if now, _ := live.Current(t.Context()); now != first {
		t.Error("the login was replaced")
	}
}

// Headers and then a body without end: only a limit of the whole ends that, and the settings of every other cloud wait.
func TestAReloadEndsWhereAVersionDocumentDoesNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keystone{catalog: catalog(), other: func(http.ResponseWriter, *http.Request) {}}
		eachEndpoint(k, "", func(e map[string]any) {
			e["url"] = strings.Replace(e["url"].(string), "http://here", "http://cloud.test", 1)
		})
		from := &readable{settings: Settings{Name: "test", AuthURL: "http://cloud.test/v3", UserID: "u", Password: "s3cret", ProjectID: "p1"}}
		live, err := NewLive(from.read, LiveOptions{Options: Options{Transport: stalling{handled{k}, "/compute"}}, Services: needed})
		if err == nil {
			_, err = live.Current(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		eachEndpoint(k, "compute", func(e map[string]any) { e["url"] = strings.TrimSuffix(e["url"].(string), "/v2.1") })
		from.settings.Password = "s3cret-2"
		began := time.Now()
		if changed, err := live.Reload(t.Context()); changed || !errors.Is(err, ErrUnreachable) || time.Since(began) != loginTimeout {
			t.Errorf("%t, %v after %s, want an error after %s", changed, err, time.Since(began), loginTimeout)
		}
	})
}

// stalling answers a path with a body that does not end.
type stalling struct {
	http.RoundTripper
	path string
}

func (e stalling) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := e.RoundTripper.RoundTrip(req)
	if err == nil && strings.TrimSuffix(req.URL.Path, "/") == e.path {
		if resp.Body = io.NopCloser(readerUntil{req.Context()}); resp.StatusCode >= http.StatusMultipleChoices {
			resp.StatusCode = http.StatusOK
		}
	}
	return resp, err
}

type readerUntil struct{ context.Context }

func (r readerUntil) Read([]byte) (int, error) {
	<-r.Done()
	return 0, r.Err()
}

// The transport closes the idle connections of a login that is replaced, and of one that is refused.
func TestALoginThatIsNotUsedKeepsNoConnections(t *testing.T) {
	t.Parallel()
	k := &keystone{catalog: catalog()}
	var closed atomic.Int32
	live, from, _ := liveOn(t, k, LiveOptions{Options: Options{Transport: closing{http.DefaultTransport, &closed}}})
	from.settings.Password = "s3cret-2"
	if changed, err := live.Reload(t.Context()); !changed || err != nil || closed.Load() != 1 {
		t.Errorf("%t, %v, closed %d times", changed, err, closed.Load())
	}
	move(k, "compute", "R2")
	from.settings.Password = "s3cret-3"
	if changed, err := live.Reload(t.Context()); changed || !errors.Is(err, ErrOtherCloud) || closed.Load() != 2 {
		t.Errorf("%t, %v, closed %d times", changed, err, closed.Load())
	}
}

type closing struct {
	http.RoundTripper
	closed *atomic.Int32
}

func (c closing) CloseIdleConnections() { c.closed.Add(1) }

// Each certificate, key and authority is part of what a login needs.
func TestEachFileOfALoginIsNoticed(t *testing.T) {
	t.Parallel()
	s := Settings{CACertFile: "/ca", CertFile: "/cert", KeyFile: "/key"}
	now, _ := withFiles(s)
	for _, path := range []string{"/ca", "/cert", "/key"} {
		if _, ok := now.files[path]; !ok {
			t.Errorf("a change of %s is not noticed", path)
		}
	}
}

// After a failure of a service, Keystone is asked for its address, at most every half minute, and by one caller for all.
func TestTheAddressOfAServiceThatFailsIsAskedForFromTimeToTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keystone{catalog: catalog()}
		for _, s := range k.catalog {
			for _, e := range s["endpoints"].([]map[string]any) {
				e["url"] = strings.Replace(e["url"].(string), "http://here", "http://cloud.test", 1)
			}
		}
		moved := ""
		from := &readable{settings: Settings{Name: "test", AuthURL: "http://cloud.test/v3", UserID: "u", Password: "s3cret", ProjectID: "p1"}}
		live, err := NewLive(from.read, LiveOptions{
			Options: Options{Transport: handled{k}}, Services: needed, Moved: func(service, address string) { moved += service + " " + address },
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := live.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 4 { // at once, after 30 s, and so on
			for range 10 {
				if _, relocated := c.Relocated(t.Context()); relocated {
					t.Error("nothing has moved")
				}
				time.Sleep(3 * time.Second)
			}
		}
		if n := len(k.logins); n != 5 {
			t.Errorf("%d logins in two minutes, want the first and 4", n)
		}
		move(k, "", "R9")
		if _, relocated := c.Relocated(t.Context()); relocated {
			t.Error("it moved to another region")
		}
		move(k, "", "R1")
		eachEndpoint(k, "compute", func(e map[string]any) { e["url"] = "http://new.test/compute/v2.1" })
		time.Sleep(relocatePause)
		next, relocated := c.Relocated(t.Context())
		if now, _ := live.Current(t.Context()); !relocated || next != now || moved != "compute http://new.test/compute/v2.1" {
			t.Errorf("relocated %t; moved: %q", relocated, moved)
		}
		if again, relocated := c.Relocated(t.Context()); !relocated || again != next {
			t.Error("a caller that has the old one does not get the new one")
		}
	})
}

// handled sends requests to a handler.
type handled struct{ http.Handler }

func (h handled) RoundTrip(req *http.Request) (*http.Response, error) {
	w := &recorded{header: http.Header{}}
	h.ServeHTTP(w, req)
	return w.response(req), nil
}

func TestALoginThatTakesTooLongEndsAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Settings{Name: "test", AuthURL: "http://cloud.test/v3", UserID: "u", Password: "s3cret", ProjectID: "p1"}
		for _, limit := range []time.Duration{0, 5 * time.Second} {
			ctx, cancel := t.Context(), context.CancelFunc(func() {})
			if limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, limit)
			}
			began := time.Now()
			_, err := Connect(ctx, s, Options{Transport: silent{}})
			cancel()
			want := map[bool]time.Duration{true: loginTimeout, false: limit}[limit == 0]
			if !errors.Is(err, ErrUnreachable) || time.Since(began) != want || limit > 0 && !strings.Contains(err.Error(), "in time") {
				t.Errorf("%v after %v, want it after %v", err, time.Since(began), want)
			}
		}
	})
}

type silent struct{}

func (silent) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// A reply that does not end says nothing about the settings, whatever time the caller has.
func TestALoginWhoseReplyDoesNotEndIsUnreachable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, err := Connect(t.Context(), Settings{Name: "test", AuthURL: "http://cloud.test/v3", UserID: "u", Password: "s3cret", ProjectID: "p1"},
			Options{Transport: stalling{handled{&keystone{catalog: catalog()}}, "/v3/auth/tokens"}})
		if !errors.Is(err, ErrUnreachable) || errors.Is(err, ErrMisconfigured) {
			t.Errorf("got %v", err)
		}
	})
}
