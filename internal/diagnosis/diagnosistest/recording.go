// Package diagnosistest records what a cluster, a driver and a cloud answer about one claim, and replays it. The tests on a real API server
// record; the tests without one replay.
package diagnosistest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// Recording is everything that one diagnosis read.
type Recording struct {
	Claim     string            `json:"claim"` // NAMESPACE/NAME
	Namespace string            `json:"driverNamespace"`
	Cause     string            `json:"cause"` // what the diagnosis must find
	Now       time.Time         `json:"now"`
	NoCloud   bool              `json:"noCloud,omitempty"`
	Cluster   map[string]Answer `json:"cluster"`
	Cloud     map[string]Answer `json:"cloud,omitempty"`
	Pages     map[string]Answer `json:"pages,omitempty"` // of pods, by name of the pod
}

// Answer is one response. Text is a body that is no JSON.
type Answer struct {
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body,omitempty"`
	Text   string          `json:"text,omitempty"`
}

// token stands for the token of the cloud, which is not recorded.
const token = "recorded"

func key(r *http.Request) string {
	name := r.Method + " " + r.URL.Path
	if r.URL.RawQuery != "" {
		name += "?" + r.URL.RawQuery
	}
	return name
}

// Recorder passes requests on and keeps the answers.
type Recorder struct {
	Next http.RoundTripper
	Into map[string]Answer
	lock sync.Mutex
}

// RoundTrip implements http.RoundTripper.
func (r *Recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.Next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(body))
	r.lock.Lock()
	r.Into[key(request)] = answer(response.StatusCode, body)
	r.lock.Unlock()
	return response, err
}

func answer(status int, body []byte) Answer {
	a := Answer{Status: status}
	var value any
	if json.Unmarshal(body, &value) != nil {
		a.Text = string(body)
		return a
	}
	a.Body, _ = json.Marshal(withoutManagedFields(value)) // it was JSON before
	return a
}

// withoutManagedFields drops what no diagnosis reads and what fills most of an object.
func withoutManagedFields(value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "managedFields")
		for name, field := range v {
			v[name] = withoutManagedFields(field)
		}
	case []any:
		for i := range v {
			v[i] = withoutManagedFields(v[i])
		}
	}
	return value
}

// Replay answers from a recording. A request that was not recorded fails.
type Replay map[string]Answer

// RoundTrip implements http.RoundTripper.
func (r Replay) RoundTrip(request *http.Request) (*http.Response, error) {
	a, found := r[key(request)]
	if !found {
		return nil, fmt.Errorf("%s was not recorded", key(request))
	}
	body := []byte(a.Body)
	if body == nil {
		body = []byte(a.Text)
	}
	header := http.Header{"Content-Type": {"application/json"}, "X-Subject-Token": {token}}
	return &http.Response{StatusCode: a.Status, Status: http.StatusText(a.Status), Header: header, Body: io.NopCloser(bytes.NewReader(body)), Request: request}, nil
}

// RecordPage wraps the reading of pages of pods.
func (r *Recording) RecordPage(next func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error)) func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error) {
	return func(ctx context.Context, namespace, pod string, port int, path string) ([]byte, error) {
		page, err := next(ctx, namespace, pod, port, path)
		if err != nil {
			r.Pages[pod] = Answer{Status: http.StatusBadGateway, Text: err.Error()}
			return nil, err
		}
		r.Pages[pod] = answer(http.StatusOK, page)
		return page, nil
	}
}

// Page replays a page of a pod.
func (r *Recording) Page(_ context.Context, _, pod string, _ int, _ string) ([]byte, error) {
	a, found := r.Pages[pod]
	if !found || a.Status != http.StatusOK {
		return nil, fmt.Errorf("pod %s: %s", pod, a.Text)
	}
	return a.Body, nil
}

// Save writes the recording.
func (r *Recording) Save(file string) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

// Load reads a recording.
func Load(file string) (*Recording, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	r := &Recording{}
	return r, json.Unmarshal(text, r)
}
