package openstack

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryRepeatsOnlyWhatDidNoHarm(t *testing.T) {
	t.Parallel()
	ok := answer{status: 200}
	dial := answer{err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	for name, tc := range map[string]struct {
		method string
		script []answer
		tries  int
		status int // 0: an error
		waited time.Duration
	}{
		"a read after 503":            {"GET", []answer{{status: 503}, ok}, 2, 200, firstWait},
		"a read after a lost answer":  {"GET", []answer{{err: io.ErrUnexpectedEOF}, ok}, 2, 200, firstWait},
		"a write after 503":           {"POST", []answer{{status: 503}, ok}, 1, 503, 0},
		"a write after a lost answer": {"DELETE", []answer{{err: io.ErrUnexpectedEOF}, ok}, 1, 0, 0},
		"a write after 429":           {"POST", []answer{{status: 429}, ok}, 2, 200, firstWait},
		"a write after 498":           {"POST", []answer{{status: 498}, ok}, 2, 200, firstWait},
		"a write without connection":  {"POST", []answer{dial, ok}, 2, 200, firstWait},
		"a quota is no rate limit":    {"POST", []answer{{status: 413, header: map[string]string{"Retry-After": "0"}}, ok}, 1, 413, 0},
		"not found":                   {"GET", []answer{{status: 404}, ok}, 1, 404, 0},
		"not implemented":             {"GET", []answer{{status: 501}, ok}, 1, 501, 0},
		"it gives up":                 {"GET", []answer{{status: 500}}, 4, 500, 7 * firstWait},
		"Retry-After in seconds":      {"GET", []answer{{status: 429, header: map[string]string{"Retry-After": "7"}}, ok}, 2, 200, 7 * time.Second},
		"Retry-After as a date":       {"GET", []answer{{status: 503, header: map[string]string{"Retry-After": "Sat, 01 Jan 2000 00:00:05 GMT"}}, ok}, 2, 200, 5 * time.Second},
		"Retry-After too far away":    {"GET", []answer{{status: 429, header: map[string]string{"Retry-After": "3600"}}, ok}, 1, 429, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{script: tc.script}
				begin := time.Now()
				var body io.Reader
				if tc.method == http.MethodPost {
					body = strings.NewReader("body")
				}
				req, err := http.NewRequestWithContext(t.Context(), tc.method, "http://cinder/", body)
				if err != nil {
					t.Fatal(err)
				}
				resp, err := Retry{Next: f, Rand: func() float64 { return 0 }}.RoundTrip(req)
				status := 0
				if err == nil {
					status = resp.StatusCode
				}
				if status != tc.status || len(f.seen) != tc.tries || time.Since(begin) != tc.waited {
					t.Errorf("status %d after %d tries and %v, want %d after %d and %v", status, len(f.seen), time.Since(begin), tc.status, tc.tries, tc.waited)
				}
				for _, s := range f.seen {
					if body != nil && s.Body != "body" {
						t.Errorf("a try had the body %q", s.Body)
					}
				}
			})
		})
	}
}

func TestRetryNeverOutlivesTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{script: []answer{{status: 503, header: map[string]string{"Retry-After": "10"}}}}
		retry := Retry{Next: f, Rand: func() float64 { return 0 }}
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		req, _ := http.NewRequestWithContext(soon, "GET", "http://cinder/", nil)
		if resp, err := retry.RoundTrip(req); err != nil || resp.StatusCode != 503 || time.Since(begin) != 0 {
			t.Errorf("%v, %v after %v; want the 503 at once, not the deadline later", resp, err, time.Since(begin))
		}
		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		req, _ = http.NewRequestWithContext(leaving, "GET", "http://cinder/", nil)
		if _, err := retry.RoundTrip(req); !errors.Is(err, context.Canceled) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v; want canceled when the caller left", err, time.Since(begin))
		}
	})
}
