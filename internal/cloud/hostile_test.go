package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/gophercloud/gophercloud/v2"

	"github.com/cinder-csi/cinder-csi/test/kit/endless"
)

// redirecting is a cloud at https://cloud.test that answers the path at with a redirect. It fails the test when a request with a
// credential reaches any other address.
func redirecting(t *testing.T, at string, status int, to string) (http.RoundTripper, *[]string) {
	var reached []string
	k := &keystone{catalog: []map[string]any{service("compute", endpoint("r", "public", "https://cloud.test/v2.1"))}, other: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"servers": []}`)
	}}
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		reached = append(reached, r.Method+" "+r.URL.String())
		w := httptest.NewRecorder()
		switch {
		case r.URL.Scheme != "https" || r.URL.Host != "cloud.test":
			t.Errorf("%s %s was sent, with token %q", r.Method, r.URL, r.Header.Get("X-Auth-Token"))
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path == at:
			w.Header().Set("Location", to)
			w.WriteHeader(status)
		default:
			k.ServeHTTP(w, r)
		}
		return w.Result(), nil
	}), &reached
}

var redirects = []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect}

func secure() Settings {
	return Settings{Name: "test", AuthURL: "https://cloud.test/v3", UserID: "u", Password: "s3cret", ProjectID: "p1"}
}

func TestARedirectFromHTTPSToHTTPCarriesNoPassword(t *testing.T) {
	t.Parallel()
	for _, status := range redirects {
		for _, to := range []string{"http://cloud.test/v3/auth/tokens", "https://other.test/v3/auth/tokens", "https://cloud.test:8443/v3/auth/tokens", "https://cloud.test/elsewhere"} {
			transport, reached := redirecting(t, "/v3/auth/tokens", status, to)
			_, err := Connect(t.Context(), secure(), Options{Transport: transport})
			if !errors.Is(err, ErrMisconfigured) || !strings.Contains(err.Error(), "redirects a POST to") {
				t.Errorf("%d to %s: error %v", status, to, err)
			}
			if len(*reached) != 1 {
				t.Errorf("%d to %s: sent %q", status, to, *reached)
			}
		}
	}
}

func TestARedirectFromHTTPSToHTTPCarriesNoToken(t *testing.T) {
	t.Parallel()
	for _, status := range redirects {
		for to, follows := range map[string]bool{
			"http://cloud.test/v2.1/servers": false, "https://other.test/v2.1/servers": false, "//other.test/": false,
			"https://cloud.test:8443/v2.1/servers": false, "https://cloud.test/v2.1/servers2": true,
		} {
			transport, _ := redirecting(t, "/v2.1/servers", status, to)
			c, err := Connect(t.Context(), secure(), Options{Transport: transport})
			if err != nil {
				t.Fatal(err)
			}
			client, err := c.Client("compute", "")
			if err != nil {
				t.Fatal(err)
			}
			_, err = client.Get(t.Context(), client.ServiceURL("servers"), nil, nil)
			if follows != (err == nil) || !follows && !errors.Is(err, errRedirect) {
				t.Errorf("%d to %s: error %v", status, to, err)
			}
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
				if _, err = client.Request(t.Context(), method, client.ServiceURL("servers"), &gophercloud.RequestOpts{}); !errors.Is(err, errRedirect) {
					t.Errorf("%s, %d to %s: error %v, want no redirect of what changes something", method, status, to, err)
				}
			}
		}
	}
}

// answering sends a body through Bound.
func answering(ctx context.Context, path string, status int, body io.Reader) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cloud.test"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	return Bound(roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body)}, nil
	})).RoundTrip(request)
}

func TestAnAnswerIsReadToItsBoundAndNoFurther(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path   string
		status int
		body   io.Reader
		want   int // bytes, or -1 for an error
	}{
		"as large as a page may be":  {"/volumes/detail", 200, io.LimitReader(endless.Byte(' '), 8<<20), 8 << 20},
		"one byte more":              {"/volumes/detail", 200, io.LimitReader(endless.Byte(' '), 8<<20+1), -1},
		"without end":                {"/volumes/detail", 200, endless.Byte(' '), -1},
		"a login":                    {"/v3/auth/tokens", 201, io.LimitReader(endless.Byte(' '), 512<<10), 512 << 10},
		"a login of more":            {"/v3/auth/tokens", 201, io.LimitReader(endless.Byte(' '), 512<<10+1), -1},
		"an error without end":       {"/volumes/detail", 500, endless.Byte('x'), 64 << 10},
		"a redirect to nowhere":      {"/volumes/detail", 302, endless.Byte('x'), 64 << 10},
		"a status of a proxy":        {"/volumes/detail", 203, endless.Byte('x'), 64 << 10},
		"a short error":              {"/volumes/detail", 404, strings.NewReader("no"), 2},
		"as many values as there be": {"/volumes/detail", 200, io.LimitReader(endless.Byte(','), 256<<10), 256 << 10},
		"many short values":          {"/volumes/detail", 200, io.LimitReader(endless.Byte(','), 256<<10+1), -1},
		"commas in a string":         {"/volumes/detail", 200, io.MultiReader(strings.NewReader(`"\"`), io.LimitReader(endless.Byte(','), 256<<10+1)), 256<<10 + 4},
	} {
		t.Run(name, func(t *testing.T) {
			resp, err := answering(t.Context(), tc.path, tc.status, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, resp.Body)
			switch {
			case tc.want < 0 && (err == nil || !strings.Contains(err.Error(), "too large")):
				t.Errorf("%d bytes, error %v; want one that says it is too large", n, err)
			case tc.want >= 0 && (int(n) != tc.want || err != nil):
				t.Errorf("%d bytes, error %v; want %d", n, err, tc.want)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAGzipBombCountsAsWhatItBecomes(t *testing.T) {
	t.Parallel()
	bomb := endless.Bomb("", ' ', 2*maxBody>>20)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb)
	}))
	defer server.Close()
	transport, err := newTransport(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: Bound(transport)}).Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil || !strings.Contains(err.Error(), "too large") || n > maxBody {
		t.Errorf("%d bytes of the bomb's %d were read, error %v", n, len(bomb), err)
	}
}

func TestHeadersWithoutEndAreCutOff(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
		}
	}))
	defer server.Close()
	transport, err := newTransport(Settings{})
	if err != nil {
		t.Fatal(err)
	}
	defer transport.CloseIdleConnections()
	if resp, err := (&http.Client{Transport: transport}).Get(server.URL); err == nil {
		_ = resp.Body.Close()
		t.Error("100 kB of headers were taken")
	}
}

// readsOfCloud returns a function that reads the reply of one cloud, which has so many bytes, and does not close it.
func readsOfCloud(t *testing.T) func(ctx context.Context, size int64) (*http.Response, error) {
	return readsOfLogin(t, NewSlots())
}

func readsOfLogin(t *testing.T, slots Slots) func(ctx context.Context, size int64) (*http.Response, error) {
	bound := slots.Bound(roundTrip(func(r *http.Request) (*http.Response, error) {
		size, err := strconv.ParseInt(r.URL.Query().Get("size"), 10, 64)
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(io.LimitReader(endless.Byte(' '), size))}, err
	}))
	return func(ctx context.Context, size int64) (*http.Response, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprint("http://cloud.test/volumes/detail?size=", size), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := bound.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		return resp, err
	}
}

func TestLargeAnswersOfAllLoginsOfACloudWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slots := NewSlots()
		before, after := readsOfLogin(t, slots), readsOfLogin(t, slots)
		for range largeBodies {
			if _, err := before(t.Context(), smallBody+1); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := after(ctx, smallBody+1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one more large answer, to another login: %v", err)
		}
	})
}

func TestLargeAnswersOfOneCloudDoNotDelayThoseOfAnother(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, other := readsOfCloud(t), readsOfCloud(t)
		for _, read := range []func(context.Context, int64) (*http.Response, error){slow, slow, other, other} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if _, err := read(ctx, smallBody+1); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestTwoLargeAnswersAreReadAtATimeAndSmallOnesDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		read := readsOfCloud(t)
		leaving, leave := context.WithCancel(t.Context())
		first, err := read(t.Context(), smallBody+1)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := read(leaving, smallBody+1); err != nil { // its caller forgets to close it
			t.Fatal(err)
		}
		if _, err := read(t.Context(), smallBody-1); err != nil {
			t.Errorf("a small answer waits: %v", err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := read(impatient, smallBody+1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a third large answer: %v", err)
		}
		_ = first.Body.Close()
		_ = first.Body.Close() // a second time gives nothing back
		if _, err := read(t.Context(), smallBody+1); err != nil {
			t.Error(err)
		}
		leave()
		synctest.Wait()
		if _, err := read(t.Context(), smallBody+1); err != nil {
			t.Errorf("the slot of a request that has ended is not free: %v", err)
		}
	})
}

// A cloud of 20 regions with 25 services, each with three interfaces, as Keystone shows an endpoint.
func TestALargeCatalogFits(t *testing.T) {
	t.Parallel()
	k := &keystone{catalog: catalog()}
	for i := range 24 {
		var all []map[string]any
		for region := range 20 {
			for _, kind := range []string{"public", "internal", "admin"} {
				e := endpoint(fmt.Sprint("r", region), kind, "https://service.region.example.com/v3/0123456789abcdef0123456789abcdef")
				e["id"] = "0123456789abcdef0123456789abcdef"
				all = append(all, e)
			}
		}
		k.catalog = append(k.catalog, service(fmt.Sprint("service-", i), all...))
	}
	c, err := Connect(t.Context(), k.serve(t), Options{Wrap: Bound})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// TestAFullPageOfVolumesFits uses a volume as Cinder shows it to an administrator (Cinder API reference, "List accessible volumes
// with details"). It has three attachments and ten metadata entries, and IDs and names of the usual lengths.
func TestAFullPageOfVolumesFits(t *testing.T) {
	t.Parallel()
	const id = "1f0a3c52-7b6d-4a52-9f6e-0d1c2b3a4f5e"
	attachments, metadata := []map[string]any{}, map[string]string{}
	for range 3 {
		attachments = append(attachments, map[string]any{
			"id": id, "attachment_id": id, "volume_id": id, "server_id": id, "host_name": "compute-17.rack-3.region.example.com",
			"device": "/dev/vdb", "attached_at": "2026-11-01T12:00:00.000000",
		})
	}
	for i := range 10 {
		metadata[fmt.Sprintf("csi.storage.k8s.io/entry-%d", i)] = strings.Repeat("v", 100)
	}
	one := map[string]any{"attachments": attachments, "metadata": metadata, "description": strings.Repeat("d", 255), "name": "pvc-" + id}
	for i := range 36 { // the others, with keys and values of 20 and 36 bytes on average
		one[fmt.Sprintf("os-vol-key-name-%04d", i)] = id
	}
	page := map[string]any{"volumes": []any{}}
	for range 1000 {
		page["volumes"] = append(page["volumes"].([]any), one)
	}
	text, err := json.Marshal(page)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := answering(t.Context(), "/volumes/detail", 200, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Volumes Items[struct{ Name string }] `json:"volumes"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Volumes) != 1000 {
		t.Errorf("%d volumes of %d bytes: %v", len(answer.Volumes), len(text), err)
	}
	t.Logf("%d bytes, %d values", len(text), resp.Body.(*boundedBody).separators.seen)
}

func TestAnArrayHasABoundedNumberOfElements(t *testing.T) {
	t.Parallel()
	decode := func(text string) (items Items[struct{ ID string }], err error) {
		return items, json.Unmarshal([]byte(text), &items)
	}
	for text, want := range map[string]int{
		`[]`: 0, `null`: 0, `[{"id":"a"},null,{}]`: 3, `[` + strings.Repeat(`{},`, 10_000-1) + `{}]`: 10_000,
		`[` + strings.Repeat(`{},`, 10_000) + `{}]`: -1, `[` + strings.Repeat(`null,`, 10_000) + `null]`: -1, `{}`: -1, `"a"`: -1, `[7]`: -1, `7`: -1,
	} {
		items, err := decode(text)
		if want < 0 != (err != nil) || want >= 0 && len(items) != want {
			t.Errorf("%.20s (%d bytes): %d items, error %v", text, len(text), len(items), err)
		}
	}
}

func TestTextOfACloudIsCleanedAndCut(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"No valid host was found":        "No valid host was found",
		"Größe überschritten — 容量不足":     "Größe überschritten — 容量不足",
		"a\nb\r\nc\td":                   "a b  c d",
		"\x1b[2J\x1b]0;title\x07":        "\ufffd[2J\ufffd]0;title\ufffd",
		"\u009b31m\x7f\x00":              "\ufffd31m\ufffd\ufffd",
		"level=ERROR\u2028\u202egnp.exe": "level=ERROR \ufffdgnp.exe",
		"\xff\xfe":                       "\ufffd\ufffd",
	} {
		if got := Clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for _, unit := range []string{"x", "é", "語", "\xff", "\x1b"} {
		got := Clean(strings.Repeat(unit, 1<<20))
		if len(got) > 3*longestText || !strings.HasSuffix(got, "…") && utf8.RuneCountInString(got) > longestText || !utf8.ValidString(got) {
			t.Errorf("%q is cut to %d bytes, valid %v", unit, len(got), utf8.ValidString(got))
		}
	}
}

func TestEveryStringOfAnAnswerIsCleaned(t *testing.T) {
	t.Parallel()
	const bad, good = "\x1b[31mred", "\ufffd[31mred"
	type inner struct {
		Name string
		Text *string
	}
	text := bad
	answer := struct {
		Name     string
		Metadata map[string]string
		List     Items[inner]
		Later    map[string]json.RawMessage
		None     *inner
	}{
		Name: bad, Metadata: map[string]string{bad: bad, "ok": "ok"}, List: Items[inner]{{bad, &text}},
		Later: map[string]json.RawMessage{bad: json.RawMessage(`{}`)},
	}
	CleanStrings(&answer)
	CleanStrings(nil)
	all, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(string(all), unicode.IsControl) || bytes.Contains(all, []byte(`\u001b`)) {
		t.Errorf("left: %s", all)
	}
	if diff := cmp.Diff(map[string]string{good: good, "ok": "ok"}, answer.Metadata); diff != "" {
		t.Errorf("metadata, -want +got\n%s", diff)
	}
}

func TestAnErrorHoldsNoControlCharacterOfTheCloud(t *testing.T) {
	t.Parallel()
	k := &keystone{catalog: []map[string]any{service("compute", endpoint("r\x1b[2J", "public", "http://here/unversioned"))}, other: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "\x1b[31m"+strings.Repeat("x", 1<<20))
	}}
	s := k.serve(t)
	c, err := Connect(t.Context(), s, Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Client("compute", "")
	if err == nil || strings.ContainsFunc(err.Error(), unicode.IsControl) || len(err.Error()) > 2*longestText {
		t.Errorf("error of %d bytes: %.200q", len(fmt.Sprint(err)), err)
	}
	s.Region = "elsewhere"
	if _, err := Connect(t.Context(), s, Options{}); err == nil || strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("error %q", err)
	}
	if strings.ContainsFunc(c.Region(), unicode.IsControl) {
		t.Errorf("region %q", c.Region())
	}
}

func TestInsecureSettingsAreReported(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Settings{
		"":                                      {Name: "c", AuthURL: "https://k/v3"},
		"certificates of the cloud":             {Name: "c", AuthURL: "https://k/v3", Insecure: true},
		"connection to http://k/v3":             {Name: "c", AuthURL: "http://k/v3"},
		"connection to http://k/v3 is":          {Name: "c", AuthURL: "http://user:secret@k/v3"},
		"connection to http://cinder.example/v": {Name: "c", AuthURL: "https://k/v3", Endpoints: map[string]string{"volume": "http://cinder.example/v"}},
	} {
		all := s.Weaknesses()
		if len(all) > 1 || want != "" && (len(all) != 1 || !strings.Contains(all[0], want)) || want == "" && len(all) != 0 {
			t.Errorf("%+v: %q, want %q", s, all, want)
		}
	}
}

// A cloud may list any number of URLs for a service. The driver sends its token to one of them.
func TestUnencryptedCatalogURLsAreReported(t *testing.T) {
	t.Parallel()
	const https = "https://cloud.test/v3"
	url := func(address string) map[string]any { return endpoint("r", "public", address) }
	for name, c := range map[string]struct {
		authURL   string
		endpoints map[string]string // by hand
		catalog   []map[string]any
		want      []string
	}{
		"Keystone has http too": {"http://cloud.test/v3", nil, []map[string]any{service("compute", url("http://cloud.test/v2.1"))}, nil},
		"https in capitals":     {"HTTPS://cloud.test/v3", nil, []map[string]any{service("compute", url("http://cloud.test/v2.1"))}, []string{"http://cloud.test/v2.1"}},
		"the second of a type":  {https, nil, []map[string]any{service("compute", url("http://cloud.test/v2.1"), url("http://unused.test/v2.1"))}, []string{"http://cloud.test/v2.1"}},
		"after a version that is not used": {
			https, nil,
			[]map[string]any{service("volumev3", url("https://cloud.test/v2/P"), url("http://cloud.test/v3/P"))},
			[]string{"http://cloud.test/v3/P"},
		},
		"after a version that is not used, in a service of its own": {
			https, nil,
			[]map[string]any{service("volumev3", url("https://cloud.test/v2/P")), service("volumev3", url("http://cloud.test/v3/P"))},
			[]string{"http://cloud.test/v3/P"},
		},
		"a version that is not used": {https, nil, []map[string]any{service("volumev3", url("http://cloud.test/v2/P"), url("https://cloud.test/v3/P"))}, nil},
		"another name of a service":  {https, nil, []map[string]any{service("volume", url("http://cloud.test/v3/P")), service("block-storage", url("https://cloud.test/v3/P"))}, nil},
		"another service":            {https, nil, []map[string]any{service("image", url("http://cloud.test/image"))}, nil},
		"an endpoint set by hand":    {https, map[string]string{"compute": "http://hand.test/v2.1"}, []map[string]any{service("compute", url("http://cloud.test/v2.1"))}, nil},
		"all three": {
			https, nil,
			[]map[string]any{service("identity", url("http://i.test/v3")), service("compute", url("http://c.test/v2.1")), service("volumev3", url("http://b.test/v3"))},
			[]string{"http://b.test/v3", "http://c.test/v2.1", "http://i.test/v3"},
		},
	} {
		k := &keystone{catalog: c.catalog}
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			k.ServeHTTP(w, r)
			return w.Result(), nil
		})
		s := secure()
		s.AuthURL, s.Endpoints = c.authURL, c.endpoints
		login, err := Connect(t.Context(), s, Options{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, login.Unencrypted()); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

// The log of the driver, an inventory and a bundle have the address of Keystone.
func TestTheAddressOfKeystoneIsToldWithoutItsLogin(t *testing.T) {
	t.Parallel()
	k := &keystone{}
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		k.ServeHTTP(w, r)
		return w.Result(), nil
	})
	for authURL, want := range map[string]string{"https://user:gate@cloud.test/v3": "https://cloud.test/v3", "https://cloud.test/v3/": "https://cloud.test/v3/"} {
		s := secure()
		s.AuthURL = authURL
		c, err := Connect(t.Context(), s, Options{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.AuthURL(); got != want {
			t.Errorf("%s: want %s, got %s", authURL, want, got)
		}
	}
}

func TestDecodingReadsLargeBodiesWholeAndRefusesLargerOnes(t *testing.T) {
	t.Parallel()
	for size, fails := range map[int]bool{10: false, 4 << 10: false, smallBody - 1: false, smallBody: false, smallBody + 1: false, smallBody + 2: false, maxBody: false, maxBody + 1: true} {
		var into struct{ Text string }
		text := `{"text": "` + strings.Repeat("x", max(0, size-len(`{"text": ""}`))) + `"}`
		if err := Decode(&http.Response{Body: io.NopCloser(iotest.HalfReader(strings.NewReader(text)))}, &into); (err != nil) != fails {
			t.Errorf("%d bytes: %v", size, err)
		} else if !fails && size >= 2*longestText && len(into.Text) != longestText {
			t.Errorf("%d bytes: a text of %d", size, len(into.Text))
		}
	}
	if err := Decode(&http.Response{Body: io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))}, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

// An error knows all of the regions, and is cut as every text of a cloud.
func TestARegionBehindManyOthersExists(t *testing.T) {
	t.Parallel()
	var others []map[string]any
	for n := range 200 {
		others = append(others, endpoint(fmt.Sprintf("other-%d", n), "public", "https://cloud.test/v3"))
	}
	k := &keystone{catalog: []map[string]any{service("volumev3", append(others, endpoint("mine", "internal", "https://cloud.test/v3"))...)}}
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		k.ServeHTTP(w, r)
		return w.Result(), nil
	})
	for region, refused := range map[string]bool{"mine": false, "nowhere": true} {
		s := secure()
		s.Region = region
		_, err := Connect(t.Context(), s, Options{Transport: transport})
		if said := err != nil && strings.Contains(err.Error(), "has no region"); said != refused || len(fmt.Sprint(err)) > longestText {
			t.Errorf("%s: want a missing region %t, got %v", region, refused, err)
		}
	}
}

// What a service repeats of a login does not reach a log. A word as short as "admin" stays, or sentences would lose it.
func TestAnErrorHoldsNoSecretUnlessItIsAShortWord(t *testing.T) {
	t.Parallel()
	for secret, stays := range map[string]bool{"seven77": true, "eight888": false, strings.Repeat("x", 40): false} {
		for name, s := range map[string]Settings{"password": {Password: Secret(secret)}, "credential": {ApplicationCredentialSecret: Secret(secret)}, "token": {Token: Secret(secret)}} {
			err := s.failure(gophercloud.ErrUnexpectedResponseCode{Actual: 400, Body: []byte(`{"badRequest": {"message": "no ` + secret + ` here"}}`)}, "the token in use")
			if text := err.Error(); strings.Contains(text, secret) != stays || !strings.Contains(text, " here") {
				t.Errorf("%s %s: %s", name, secret, text)
			}
		}
	}
}

// JSON may have escaped a secret, and a message is cut.
func TestASecretIsTakenOutBeforeAMessageIsCut(t *testing.T) {
	t.Parallel()
	s := Settings{Password: "correct-horse&battery"}
	for at := range 1100 {
		body := `{"badRequest": {"message": "` + strings.Repeat("x", at) + `correct-horse\u0026battery"}}`
		err := s.failure(gophercloud.ErrUnexpectedResponseCode{Actual: 400, Body: []byte(body)}, "the token in use")
		if strings.Contains(err.Error(), "corr") {
			t.Fatalf("at %d: %s", at, err)
		}
	}
}

// A login may have no token yet, and a text without a token stays as it is, whatever its form.
func TestAShortTokenIsTakenOutOfNothing(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]string{"": "no seven77 or eight888", "seven77": "no seven77 or eight888", "eight888": "no seven77 or " + redacted} {
		answer := struct {
			Text  string
			Later json.RawMessage
		}{"no seven77 or eight888", json.RawMessage("no seven77 or eight888")}
		cleaner{[]string{token}}.clean(&answer)
		if answer.Text != want || string(answer.Later) != want {
			t.Errorf("token %q: %q and %q", token, answer.Text, answer.Later)
		}
	}
}

func TestBytesThatAreNotUTF8AreNotMultiplied(t *testing.T) {
	t.Parallel()
	var got struct{ Name string }
	if err := Unmarshal([]byte("{\"name\": \"a\xff\xfeb\"}"), &got); err != nil || got.Name != "a?b" {
		t.Errorf("got %q, %v", got.Name, err)
	}
}
