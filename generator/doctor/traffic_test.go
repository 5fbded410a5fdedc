package doctor

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// Keystone in uWSGI sends no Date header, and a proxy before it sends its own. The token has the time of Keystone itself.
func TestTheClockOfKeystoneIsThatOfItsToken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	const body = `{"token": {"issued_at": "2026-11-25T11:00:00.000000Z", "expires_at": "2026-11-26T11:00:00.000000Z"}}`
	for name, date := range map[string]string{"no Date header": "", "the Date of a proxy": now.Format(http.TimeFormat)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keystone := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = nil
				if date != "" {
					w.Header().Set("Date", date)
				}
				w.Header().Set("X-Subject-Token", "token")
				w.WriteHeader(http.StatusCreated)
				_, _ = io.WriteString(w, body)
			}))
			defer keystone.Close()
			traffic := &Traffic{Now: func() time.Time { return now }}
			resp, err := (&http.Client{Transport: traffic.Watch(http.DefaultTransport)}).Post(keystone.URL+"/v3/auth/tokens", "application/json", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if text, err := io.ReadAll(resp.Body); err != nil || string(text) != body {
				t.Errorf("the reader of the response gets %q, %v; want the body", text, err)
			}
			for _, h := range traffic.hosts {
				if want := -25 * time.Hour; !h.dated || (h.skew-want).Abs() > time.Second {
					t.Errorf("the clock is %s ahead (known: %v), want %s", h.skew, h.dated, want)
				}
			}
		})
	}
}
