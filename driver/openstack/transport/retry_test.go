package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
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
		"read after 503":              {"GET", []answer{{status: 503}, ok}, 2, 200, firstBackoff},
		"read after a lost answer":    {"GET", []answer{{err: io.ErrUnexpectedEOF}, ok}, 2, 200, firstBackoff},
		"write after 503":             {"POST", []answer{{status: 503}, ok}, 1, 503, 0},
		"write after a lost answer":   {"DELETE", []answer{{err: io.ErrUnexpectedEOF}, ok}, 1, 0, 0},
		"write after 429":             {"POST", []answer{{status: 429}, ok}, 2, 200, firstBackoff},
		"write after 498":             {"POST", []answer{{status: 498}, ok}, 2, 200, firstBackoff},
		"write without a connection":  {"POST", []answer{dial, ok}, 2, 200, firstBackoff},
		"a quota is not a rate limit": {"POST", []answer{{status: 413, retryAfter: "0"}, ok}, 1, 413, 0},
		"not found":                   {"GET", []answer{{status: 404}, ok}, 1, 404, 0},
		"not implemented":             {"GET", []answer{{status: 501}, ok}, 1, 501, 0},
		"too many attempts":           {"GET", []answer{{status: 500}}, 4, 500, 7 * firstBackoff},
		"Retry-After in seconds":      {"GET", []answer{{status: 429, retryAfter: "7"}, ok}, 2, 200, 7 * time.Second},
		"Retry-After as a date":       {"GET", []answer{{status: 503, retryAfter: "Sat, 01 Jan 2000 00:00:05 GMT"}, ok}, 2, 200, 5 * time.Second},
		"Retry-After too long":        {"GET", []answer{{status: 429, retryAfter: "3600"}, ok}, 1, 429, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := answering(tc.script...)
				begin := time.Now()
				status, _ := send(t.Context(), t, Retry(f, noJitter), tc.method)
				if status != tc.status || len(f.at) != tc.tries || time.Since(begin) != tc.waited {
					t.Errorf("status %d after %d tries and %v, want %d after %d and %v", status, len(f.at), time.Since(begin), tc.status, tc.tries, tc.waited)
				}
				for _, body := range f.bodies {
					if tc.method == "POST" && body != "body" {
						t.Errorf("a try had the body %q", body)
					}
				}
			})
		})
	}
}

// Without the spread, callers that failed together would come back together.
func TestRandomnessSpreadsRetriesOverTheBackoff(t *testing.T) {
	t.Parallel()
	for random, want := range map[float64]time.Duration{0: firstBackoff, 0.5: 3 * firstBackoff / 2, 0.75: 7 * firstBackoff / 4} {
		synctest.Test(t, func(t *testing.T) {
			f, begin := answering(answer{status: 503}, answer{status: 200}), time.Now()
			status, err := send(t.Context(), t, Retry(f, func() float64 { return random }), "GET")
			if err != nil || status != 200 || time.Since(begin) != want {
				t.Errorf("random number %v: %d, %v after %v, want a retry after %v", random, status, err, time.Since(begin), want)
			}
		})
	}
}

func TestARequestOfOneAttemptIsNotRepeated(t *testing.T) {
	t.Parallel()
	for _, first := range []answer{{status: 503}, {status: 429}, {err: &net.OpError{Op: "dial", Err: errors.New("refused")}}} {
		f := answering(first, answer{status: 200})
		if status, _ := send(volume.WithOneAttempt(t.Context()), t, Retry(f, noJitter), "GET"); status != first.status || len(f.at) != 1 {
			t.Errorf("%v: status %d after %d attempts", first, status, len(f.at))
		}
	}
}

func TestRetryNeverOutlivesTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		retry := Retry(answering(answer{status: 503, retryAfter: "10"}), noJitter)
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		begin := time.Now()
		if status, err := send(soon, t, retry, "GET"); err != nil || status != 503 || time.Since(begin) != 0 {
			t.Errorf("%d, %v after %v; want the 503 at once, not the deadline later", status, err, time.Since(begin))
		}
		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := send(leaving, t, retry, "GET"); !errors.Is(err, context.Canceled) || time.Since(begin) != time.Second {
			t.Errorf("%v after %v; want canceled when the caller left", err, time.Since(begin))
		}
	})
}

// Behaviour check 9 of upstream's failures: 429 with Retry-After: 2 becomes a success after the pause.
func TestCheck9TooManyRequestsSucceedAfterRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := answering(answer{status: 429, retryAfter: "2"}, answer{status: 200})
		begin := time.Now()
		status, err := send(t.Context(), t, Retry(NewBudget(100, 50, &meter{}).Limit(f), noJitter), "POST")
		if err != nil || status != 200 || time.Since(begin) != 2*time.Second {
			t.Errorf("%v, %v after %v", status, err, time.Since(begin))
		}
	})
}

// Nobody waits for another attempt: the failure of the first is the answer.
func TestAPauseOfManyYearsIsADay(t *testing.T) {
	for _, seconds := range []string{"86401", "9223372037", "9223372036854775807"} {
		if got, ok := cloud.RetryAfter(http.Header{"Retry-After": {seconds}}, time.Now()); !ok || got != 24*time.Hour {
			t.Errorf("%s: want a day, got %s", seconds, got)
		}
	}
}

func TestAFailedReadIsNotRepeatedWhereNobodyWaits(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, ctx := range map[string]context.Context{
		"the context has ended": ended,
		"the caller has left":   volume.WithCaller(t.Context(), ended),
	} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://cinder/v3/volumes", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if repeatable(req, &http.Response{StatusCode: http.StatusServiceUnavailable}, nil) {
			t.Errorf("%s: it is repeated", name)
		}
	}
}
