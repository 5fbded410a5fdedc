//go:build scale

package scale

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// object is one object of the cluster, or a part of one.
type object = map[string]any

// rest sends requests to the API server as its administrator. It counts them, since they are no cost of the driver.
type rest struct {
	base string
	http *http.Client
	sent atomic.Int64
}

func newREST(port string) *rest {
	// HTTP/1.1: its connections share the work better than the streams of a single one.
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: 64, MaxConnsPerHost: 128,
		TLSNextProto: map[string]func(string, *tls.Conn) http.RoundTripper{},
	}
	return &rest{base: "https://127.0.0.1:" + port, http: &http.Client{Transport: transport}}
}

func (r *rest) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, r.base+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer admin")
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	r.sent.Add(1)
	return r.http.Do(request)
}

// statusError is an answer other than success.
type statusError struct {
	code    int
	message string
}

func (e statusError) Error() string { return e.message }

// send sends a request, and reads the answer into out unless it is nil.
func (r *rest) send(method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	response, err := r.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		text, _ := io.ReadAll(response.Body)
		return statusError{response.StatusCode, fmt.Sprintf("%s %s: HTTP %d %.300s", method, path, response.StatusCode, text)}
	}
	if out == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(out)
}

// insist repeats a request for a minute, unless the answer says that this is of no use.
func (r *rest) insist(method, path string, body, out any) error {
	deadline := time.Now().Add(time.Minute)
	for {
		err := r.send(method, path, body, out)
		status, answered := err.(statusError)
		switch {
		case err == nil:
			return nil
		case answered && (status.code == http.StatusConflict || status.code == http.StatusUnprocessableEntity):
			return err
		case answered && status.code == http.StatusNotFound && method != http.MethodPost:
			return err
		case time.Now().After(deadline):
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// event is one line of a watch.
type event[T any] struct {
	Type   string
	Object T
}

type listMeta struct{ ResourceVersion string }

// watch calls handle for each object that exists, and for each change, until the context ends. After an interruption it lists again: then
// listed has all objects, so that deletions in between are noticed.
func watch[T any](ctx context.Context, r *rest, path string, listed func([]T), handle func(kind string, o T)) {
	for ctx.Err() == nil {
		var list struct {
			Metadata listMeta
			Items    []T
		}
		if err := r.send(http.MethodGet, path+"?resourceVersion=0", nil, &list); err != nil {
			time.Sleep(500 * time.Millisecond)
			continue
		}
		listed(list.Items)
		follow(ctx, r, path+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion, handle)
	}
}

func follow[T any](ctx context.Context, r *rest, path string, handle func(kind string, o T)) {
	response, err := r.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return
	}
	defer response.Body.Close()
	for decoder := json.NewDecoder(response.Body); ; {
		var e event[T]
		if err := decoder.Decode(&e); err != nil || e.Type == "ERROR" {
			return
		}
		handle(e.Type, e.Object)
	}
}
