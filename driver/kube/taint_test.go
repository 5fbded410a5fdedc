package kube

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/internal/memnet"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// fakeAPI is a Kubernetes API with nodes, CSINodes and volume attachments.
type fakeAPI struct {
	t *testing.T

	mu          sync.Mutex
	taints      map[string][]string // by node
	limits      map[string]*int64   // of the driver in the CSINode, by node; a nil value: registered without a limit
	attachments []map[string]any
	watchers    []chan event
	deny        bool
	silent      bool // a patch causes no event
	patches     []string
	requests    int
}

const own = "cinder.csi.openstack.org"

func startAPI(t *testing.T, f *fakeAPI) *API {
	t.Helper()
	f.t = t
	listener := memnet.Listen()
	server := &http.Server{Handler: f, ReadHeaderTimeout: time.Hour}
	go func() { _ = server.Serve(listener) }()
	transport := &http.Transport{DialContext: listener.DialContext}
	t.Cleanup(func() { _ = server.Close(); transport.CloseIdleConnections() })
	api, err := New(Options{Server: "http://kubernetes", Env: func(string) string { return "" }, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func (f *fakeAPI) node(name string) map[string]any {
	taints := []map[string]string{}
	for _, key := range f.taints[name] {
		taints = append(taints, map[string]string{"key": key, "effect": "NoExecute"})
	}
	return map[string]any{"metadata": map[string]any{"name": name, "resourceVersion": "7"}, "spec": map[string]any{"taints": taints}}
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests++
	if f.deny {
		f.mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
		return
	}
	answer := func(v any) {
		f.mu.Unlock()
		_ = json.NewEncoder(w).Encode(v)
	}
	name := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	switch {
	case r.URL.Query().Get("watch") == "1":
		events := make(chan event)
		f.watchers = append(f.watchers, events)
		f.mu.Unlock()
		f.stream(w, r, events)
	case r.URL.Path == "/api/v1/nodes": // two pages
		items := []map[string]any{}
		for name := range f.taints {
			items = append(items, f.node(name))
		}
		more := r.URL.Query().Get("continue") == ""
		if !more {
			items = nil
		}
		answer(map[string]any{"metadata": map[string]any{"resourceVersion": "7", "continue": map[bool]string{true: "page 2"}[more]}, "items": items})
	case r.Method == http.MethodPatch:
		f.patch(w, r, name)
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/") && f.taints[name] != nil:
		answer(f.node(name))
	case r.URL.Path == "/apis/storage.k8s.io/v1/volumeattachments":
		answer(map[string]any{"items": f.attachments})
	case strings.HasPrefix(r.URL.Path, "/apis/storage.k8s.io/v1/csinodes/"):
		limit, registered := f.limits[name]
		if !registered {
			f.mu.Unlock()
			w.WriteHeader(http.StatusNotFound)
			return
		}
		answer(map[string]any{"spec": map[string]any{"drivers": []any{
			map[string]any{"name": "other.csi", "allocatable": map[string]any{"count": 5}}, map[string]any{"name": own, "allocatable": map[string]any{"count": limit}},
		}}})
	default:
		f.mu.Unlock()
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *fakeAPI) stream(w http.ResponseWriter, r *http.Request, events chan event) {
	flusher := w.(http.Flusher)
	flusher.Flush()
	for {
		select {
		case e, open := <-events:
			if !open {
				return
			}
			_ = json.NewEncoder(w).Encode(e)
			flusher.Flush()
		case <-r.Context().Done():
			return
		}
	}
}

// patch applies the JSON patch of StartupTaints; the caller holds f.mu.
func (f *fakeAPI) patch(w http.ResponseWriter, r *http.Request, name string) {
	defer f.mu.Unlock()
	var operations []map[string]string
	if err := json.NewDecoder(r.Body).Decode(&operations); err != nil || r.Header.Get("Content-Type") != "application/json-patch+json" {
		f.t.Errorf("a bad patch: %v, %s", err, r.Header)
	}
	at, err := strconv.Atoi(strings.TrimPrefix(operations[1]["path"], "/spec/taints/"))
	taints := f.taints[name]
	if err != nil || operations[0]["op"] != "test" || operations[1]["op"] != "remove" || at >= len(taints) || operations[0]["value"] != taints[at] {
		w.WriteHeader(http.StatusUnprocessableEntity)
		return
	}
	f.taints[name] = append(append([]string{}, taints[:at]...), taints[at+1:]...)
	f.patches = append(f.patches, name)
	if !f.silent {
		go f.tell("MODIFIED", name)
	}
	_, _ = fmt.Fprint(w, "{}")
}

// set changes the API under its lock.
func (f *fakeAPI) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// tell sends the present node to every watcher.
func (f *fakeAPI) tell(kind, name string) {
	f.mu.Lock()
	object, _ := json.Marshal(f.node(name))
	watchers := append([]chan event{}, f.watchers...)
	f.mu.Unlock()
	for _, w := range watchers {
		select {
		case w <- event{Type: kind, Object: object}:
		case <-f.t.Context().Done():
		}
	}
}

func (f *fakeAPI) patched() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.patches, " ")
}

func pointer(n int64) *int64 { return &n }

func TestTheStartupTaintGoesOnceTheDriverIsReadyOnTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{
			taints: map[string][]string{"ready": {"other", contract.StartupTaint(own)}, "registered-without-a-limit": {contract.StartupTaint(own)}, "not-yet": {contract.StartupTaint(own)}, "untainted": {"other"}},
			limits: map[string]*int64{"ready": pointer(26), "registered-without-a-limit": nil, "untainted": pointer(26)},
		}
		log := &testenv.Log{}
		s := &StartupTaints{API: startAPI(t, f), Driver: own, Log: slog.New(slog.NewTextHandler(log, nil))}
		go s.Run(t.Context())
		time.Sleep(500 * time.Millisecond)
		if got := f.patched(); got != "ready" || len(f.taints["ready"]) != 1 || f.taints["ready"][0] != "other" {
			t.Errorf("patched %q; taints left: %v", got, f.taints)
		}
		if !strings.Contains(log.String(), "removed the start-up taint") {
			t.Errorf("the log does not say so: %s", log)
		}
		f.set(func() { f.limits["not-yet"] = pointer(26) })
		time.Sleep(2 * time.Second)
		if got := f.patched(); got != "ready not-yet" {
			t.Errorf("patched %q", got)
		}

		// A node that joins later comes as an event of the watch.
		f.set(func() { f.taints["new"], f.limits["new"] = []string{contract.StartupTaint(own)}, pointer(26) })
		f.tell("ADDED", "new")
		time.Sleep(500 * time.Millisecond)
		if got := f.patched(); got != "ready not-yet new" {
			t.Errorf("patched %q", got)
		}
		f.tell("DELETED", "registered-without-a-limit")
		time.Sleep(100 * time.Millisecond)
		f.set(func() { f.requests = 0 })
		time.Sleep(time.Minute)
		f.set(func() {
			if f.requests > 0 {
				t.Errorf("%d requests in a minute without anything to do", f.requests)
			}
		})
	})
}

func TestATaintThatMovedOrThatAnotherReplicaRemovedDoesNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{taints: map[string][]string{"n": {"first", contract.StartupTaint(own)}}, limits: map[string]*int64{}}
		log := &testenv.Log{}
		s := &StartupTaints{API: startAPI(t, f), Driver: own, Log: slog.New(slog.NewTextHandler(log, nil))}
		go s.Run(t.Context())
		time.Sleep(500 * time.Millisecond)
		f.set(func() { f.taints["n"], f.limits["n"] = []string{contract.StartupTaint(own)}, pointer(3) }) // no event yet: the index is wrong
		time.Sleep(5 * time.Second)
		if got := f.patched(); got != "" {
			t.Errorf("patched %q by a wrong index", got)
		}
		f.tell("MODIFIED", "n")
		time.Sleep(time.Minute)
		if got := f.patched(); got != "n" || strings.Contains(log.String(), "WARN") {
			t.Errorf("patched %q; log: %s", got, log)
		}
	})
}

// The event of the driver's own change may be late.
func TestANodeWhoseTaintWasRemovedIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{taints: map[string][]string{"n": {contract.StartupTaint(own)}}, limits: map[string]*int64{"n": pointer(3)}, silent: true}
		s := &StartupTaints{API: startAPI(t, f), Driver: own, Log: slog.New(slog.DiscardHandler)}
		go s.Run(t.Context())
		time.Sleep(500 * time.Millisecond)
		f.set(func() { f.requests = 0 })
		time.Sleep(time.Minute)
		if got := f.patched(); got != "n" {
			t.Errorf("patched %q", got)
		}
		f.set(func() {
			if f.requests > 0 {
				t.Errorf("%d requests in a minute after the taint was removed", f.requests)
			}
		})
	})
}

func TestAMissingRightIsLoggedOnceAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{taints: map[string][]string{"n": {contract.StartupTaint(own)}}, limits: map[string]*int64{"n": pointer(3)}, deny: true}
		log := &testenv.Log{}
		s := &StartupTaints{API: startAPI(t, f), Driver: own, Log: slog.New(slog.NewTextHandler(log, nil))}
		go s.Run(t.Context())
		time.Sleep(10 * time.Minute)
		if n := strings.Count(log.String(), "list, watch and patch nodes"); n != 1 {
			t.Errorf("logged %d times: %s", n, log)
		}
		f.set(func() { f.deny = false })
		time.Sleep(time.Minute)
		if got := f.patched(); got != "n" {
			t.Errorf("patched %q", got)
		}
	})
}

func TestAWatchThatEndsBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAPI{taints: map[string][]string{}, limits: map[string]*int64{"n": pointer(3)}}
		s := &StartupTaints{API: startAPI(t, f), Driver: own, Log: slog.New(slog.DiscardHandler)}
		go s.Run(t.Context())
		time.Sleep(time.Second)
		f.set(func() {
			for _, w := range f.watchers {
				close(w)
			}
			f.watchers = nil
			f.taints["n"] = []string{contract.StartupTaint(own)} // joins while nobody watches
		})
		time.Sleep(5 * time.Second)
		if got := f.patched(); got != "n" {
			t.Errorf("patched %q", got)
		}
	})
}
