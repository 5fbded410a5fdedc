package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// The size of a page of a list, and the time of one watch. After it, a new list finds what was missed.
const (
	pageSize  = 500
	watchTime = 5 * time.Minute
)

// node has the fields of a Node that matter here.
type node struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		Taints []struct {
			Key string `json:"key"`
		} `json:"taints"`
	} `json:"spec"`
}

// taint returns the index of the last taint with that key in spec.taints.
func (n node) taint(key string) (index int, ok bool) {
	for i, t := range slices.Backward(n.Spec.Taints) {
		if t.Key == key {
			return i, true
		}
	}
	return 0, false
}

// list calls each for every object of a list, and returns the version of the list.
func list[T any](ctx context.Context, a *API, object, path string, each func(T)) (version string, err error) {
	for next := ""; ; {
		var page struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		query := url.Values{"limit": {fmt.Sprint(pageSize)}}
		if next != "" {
			query.Set("continue", next)
		}
		if err := a.get(ctx, object, path+"?"+query.Encode(), &page); err != nil {
			return "", err
		}
		for _, item := range page.Items {
			each(item)
		}
		if next = page.Metadata.Continue; next == "" {
			return page.Metadata.ResourceVersion, nil
		}
	}
}

// event is one line of a watch (Kubernetes API concepts, "Efficient detection of changes").
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// node returns the node of an event; false for one of another kind.
func (e event) node() (n node, ok bool) {
	err := json.Unmarshal(e.Object, &n)
	return n, err == nil && n.Metadata.Name != ""
}

// watchNodes returns the changes of nodes since a version. The channel is closed when the API has ended the watch, or ctx has ended.
func (a *API) watchNodes(ctx context.Context, version string) (<-chan event, error) {
	query := url.Values{
		"watch": {"1"}, "resourceVersion": {version}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {fmt.Sprint(int(watchTime.Seconds()))},
	}
	streaming := &http.Client{Transport: a.client.Transport, CheckRedirect: a.client.CheckRedirect} // without the time limit of one answer
	resp, err := a.send(ctx, streaming, "nodes", http.MethodGet, "/api/v1/nodes?"+query.Encode(), nil)
	if err != nil {
		return nil, err
	}
	events := make(chan event)
	panics.Go(slog.Default(), "the watch of the nodes", func() {
		defer close(events) // a new list and watch follow
		defer resp.Body.Close()
		for decoder := json.NewDecoder(resp.Body); ; {
			var e event
			if err := decoder.Decode(&e); err != nil {
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	return events, nil
}
