package driver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/cinder-csi/cinder-csi/driver/config"
	"github.com/cinder-csi/cinder-csi/driver/operation"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
)

func TestReadinessDependsOnTheCloudAndHealthDoesNot(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want map[string]int
	}{
		"the cloud answers":     {nil, map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 200, "/startupz": 200, "/": 404}},
		"the cloud is not here": {errors.New("no answer from Keystone"), map[string]int{"/metrics": 200, "/healthz": 200, "/readyz": 503, "/startupz": 503}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				registry.MustRegister(collectors.NewGoCollector())
				ctx, stop := context.WithCancel(t.Context())
				listener, ended := memnet.Listen(), make(chan error, 1)
				ready := func(context.Context) error { return test.err }
				go func() {
					ended <- ServeHTTP(ctx, listener, pages(config.Config{}, registry, ready, newStartup(1, ready).ready, &operation.List{}))
				}()
				client := http.Client{Transport: &http.Transport{DialContext: listener.DialContext}}
				for path, want := range test.want {
					resp, err := client.Get("http://driver" + path)
					if err != nil {
						t.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
					if resp.StatusCode != want {
						t.Errorf("%s: want %d, got %d", path, want, resp.StatusCode)
					}
				}
				client.CloseIdleConnections()
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Clients may make as many connections as they like, and read and write as slowly.
func TestClientsThatHoldConnectionsShutNobodyOut(t *testing.T) {
	const wait = "GET /readyz HTTP/1.1\r\nHost: driver\r\n"
	for name, text := range map[string]string{
		"they send nothing":             "",
		"a byte of a header":            "G",
		"an answer that nobody reads":   "GET /metrics HTTP/1.1\r\nHost: driver\r\n\r\n",
		"an answer that takes time":     wait + "\r\n",
		"the next request before that":  wait + "\r\nG",
		"a body that does not come yet": wait + "Content-Length: 9\r\n\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			registry := prometheus.NewRegistry()
			registry.MustRegister(collectors.NewGoCollector())
			var waiting atomic.Int64
			ready := func(ctx context.Context) error {
				waiting.Add(1)
				defer waiting.Add(-1)
				<-ctx.Done()
				return ctx.Err()
			}
			ctx, stop := context.WithCancel(t.Context())
			listener, ended := &counted{Listener: memnet.Listen()}, make(chan error, 1)
			go func() {
				ended <- ServeHTTP(ctx, listener, pages(config.Config{}, registry, ready, ready, &operation.List{}))
			}()
			for range mostConnections + 50 {
				conn, err := listener.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := io.WriteString(conn, text); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if open, running := listener.open.Load(), waiting.Load(); open > mostConnections || running > mostConnections {
				t.Errorf("%s: want at most %d connections, got %d, with %d requests", name, mostConnections, open, running)
			}
			client, begin := http.Client{Transport: &http.Transport{DialContext: listener.DialContext}}, time.Now()
			for _, path := range []string{"/healthz", "/metrics"} {
				if resp, err := client.Get("http://driver" + path); err != nil || resp.StatusCode != http.StatusOK || time.Since(begin) > 0 {
					t.Errorf("%s: want %s at once, got %v, %v after %v", name, path, resp, err, time.Since(begin))
				} else {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			time.Sleep(answerTime) // the requests end
		})
	}
}

// However many clients request the metrics, and however often, the driver makes them once a second. Each client gets what it asks for, and nobody holds
// a text of its own.
func TestAnyNumberOfClientsShareTheMetricsOfASecond(t *testing.T) {
	const takes = 100 * time.Millisecond
	var made atomic.Int64
	shown := 0
	gatherer := prometheus.NewRegistry()
	gatherer.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "made"}, func() float64 {
		made.Add(1)
		now := time.Now().UnixMilli() % 1e9
		time.Sleep(takes)
		return float64(now)
	}))
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		listener, ended := memnet.Listen(), make(chan error, 1)
		go func() { ended <- ServeHTTP(ctx, listener, pages(config.Config{}, gatherer, nil, nil, nil)) }()
		begin := time.Now()
		for tick := range 300 { // 1,000 clients a second, which leave without an answer, and a scrape that wants one
			for range 10 {
				conn, err := listener.Dial(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				go func() {
					_, _ = io.WriteString(conn, "GET /metrics HTTP/1.1\r\nHost: driver\r\nAccept-Encoding: gzip\r\n\r\n")
				}()
			}
			time.Sleep(10 * time.Millisecond)
			if tick%20 != 0 {
				continue
			}
			client, requested := http.Client{Transport: &http.Transport{DialContext: listener.DialContext}}, time.Now()
			resp, err := client.Get("http://driver/metrics")
			if err != nil {
				t.Fatalf("after %v: %v", time.Since(begin), err)
			}
			text, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			_, value, _ := strings.Cut(string(text), "\nmade ")
			at, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if age := requested.UnixMilli()%1e9 - int64(at); err != nil || age >= 1000 {
				t.Fatalf("the scrape is %d ms old, %v: %q", age, err, text)
			}
			shown++
		}
		if seconds := int64(time.Since(begin)/time.Second) + 1; made.Load() > seconds {
			t.Errorf("%d scrapes in %d seconds, and the driver made the metrics %d times", shown, seconds, made.Load())
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}

		page, texts := pages(config.Config{}, gatherer, nil, nil, nil), &distinct{seen: map[*byte]bool{}}
		for range mostConnections {
			go page.ServeHTTP(texts, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
		}
		time.Sleep(time.Second)
		if n := texts.count(); n != 1 {
			t.Errorf("%d clients hold %d texts", mostConnections, n)
		}
		time.Sleep(answerTime)
	})
}

// distinct counts the texts that clients hold.
type distinct struct {
	mu   sync.Mutex
	seen map[*byte]bool
}

func (*distinct) Header() http.Header { return http.Header{} }
func (*distinct) WriteHeader(int)     {}
func (d *distinct) Write(text []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen[&text[0]] = true
	return len(text), nil
}

func (d *distinct) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.seen)
}

// counted counts the connections that the server has not closed.
type counted struct {
	*memnet.Listener
	open atomic.Int64
}

func (l *counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.open.Add(1)
	return &closing{conn, sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type closing struct {
	net.Conn
	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.Conn.Close()
}

func TestDebugPagesAreServedToLoopbackClientsOnly(t *testing.T) {
	var list operation.List
	list.Begin(operation.Key{Method: "DeleteVolume", Object: "volume v"}, &volume.Progress{})("Aborted", "another call works on the volume", "volume.busy")
	for _, test := range []struct {
		path, from string
		pprof      bool
		want       int
	}{
		{"/debug/operations", "127.0.0.1:4000", false, 200},
		{"/debug/operations", "[::1]:4000", false, 200},
		{"/debug/operations", "[::ffff:127.0.0.1]:4000", false, 200},
		{"/debug/operations", "192.0.2.7:4000", false, 403},
		{"/debug/operations", "pipe", false, 403},
		{"/debug/pprof/heap", "127.0.0.1:4000", true, 200},
		{"/debug/pprof/heap", "192.0.2.7:4000", true, 403},
		{"/debug/pprof/heap", "127.0.0.1:4000", false, 404},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, http.NoBody)
		r.RemoteAddr = test.from
		w := httptest.NewRecorder()
		pages(config.Config{DriverName: "cinder", Controller: true, Pprof: test.pprof}, prometheus.NewRegistry(), nil, nil, &list).ServeHTTP(w, r)
		if w.Code != test.want {
			t.Errorf("%s from %s: want %d, got %d", test.path, test.from, test.want, w.Code)
		}
		if w.Code != 200 || test.pprof {
			continue
		}
		var got Operations
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		if got.DriverName != "cinder" || !got.Controller || got.Node || got.Now.IsZero() || len(got.Operations) != 1 || got.Operations[0].LastError != "another call works on the volume" {
			t.Errorf("got %s", w.Body)
		}
	}
}

func TestACallerThatLeavesDoesNotSpoilTheReadinessOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check := sharedCheck(func(ctx context.Context) error {
			time.Sleep(time.Second)
			return ctx.Err()
		})
		leaving, leave := context.WithTimeout(t.Context(), time.Millisecond)
		defer leave()
		go func() { _ = check(leaving) }()
		time.Sleep(time.Millisecond)
		if err := check(t.Context()); err != nil {
			t.Errorf("error %v of another caller", err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		time.Sleep(checkAge)
		go func() { _ = check(t.Context()) }()
		synctest.Wait()
		if err := check(impatient); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want that of the caller's own deadline", err)
		}
		time.Sleep(time.Second)
	})
}
