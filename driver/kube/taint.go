package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// StartupTaints removes the start-up taint of nodes once the driver is ready there.
//
// A new node is Ready before the driver has registered with kubelet. Until then the scheduler knows no attach limit of the node, and places
// more pods with volumes there than it can attach. So the administrator lets nodes join with a taint whose key is contract.StartupTaint. The driver
// removes it once the CSINode object shows the driver with an attach limit (Kubernetes API, CSINode, spec.drivers[].allocatable).
//
// It works without memory and without an elected leader. The patch names the taint by its index and tests its key. So two replicas may
// both send it: the second one fails and does no harm.
type StartupTaints struct {
	API    *API
	Driver string // the name that the driver registers
	Log    *slog.Logger

	waiting map[string]*attempt // tainted nodes whose driver is not ready, by name
}

type attempt struct {
	taint int // index of the taint in spec.taints
	next  time.Time
	delay time.Duration
}

// How often the driver looks at the CSINode of a tainted node, and how long a failed watch pauses. A node registers its driver a few seconds
// after it is Ready. The delay doubles up to the longest one, because a node may never become ready.
const (
	firstDelay   = time.Second
	longestDelay = 30 * time.Second
	watchTime    = 5 * time.Minute // of one watch; then a new list finds what was missed
	pageSize     = 500
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

// Run watches the nodes until ctx ends. Without the right to do so it logs that once, and tries again.
func (s *StartupTaints) Run(ctx context.Context) {
	denied := false
	for delay := firstDelay; ctx.Err() == nil; {
		s.waiting = map[string]*attempt{}
		began := time.Now()
		switch err := s.watch(ctx); {
		case ctx.Err() != nil:
			return
		case volume.Is(err, volume.PermissionDenied) && !denied:
			denied = true
			s.Log.ErrorContext(ctx, "cannot remove start-up taints; allow the service account of the driver to list, watch and patch nodes and to get csinodes", "error", err)
		case err != nil:
			s.Log.DebugContext(ctx, "the watch of the nodes failed; the driver starts it again", "error", err)
		}
		if time.Since(began) > watchTime/2 {
			delay = firstDelay
		}
		if !sleep(ctx, delay) {
			return
		}
		delay = min(2*delay, longestDelay)
	}
}

// watch lists the nodes, and then follows their changes for watchTime.
func (s *StartupTaints) watch(ctx context.Context) error {
	version, err := s.list(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, watchTime+30*time.Second)
	defer cancel()
	query := url.Values{"watch": {"1"}, "resourceVersion": {version}, "allowWatchBookmarks": {"true"}, "timeoutSeconds": {fmt.Sprint(int(watchTime.Seconds()))}}
	streaming := &http.Client{Transport: s.API.client.Transport, CheckRedirect: s.API.client.CheckRedirect} // without the time limit of one answer
	resp, err := s.API.send(ctx, streaming, "nodes", http.MethodGet, "/api/v1/nodes?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	events, ended := make(chan event), make(chan error, 1)
	go func() {
		dec := json.NewDecoder(resp.Body)
		for {
			var e event
			if err := dec.Decode(&e); err != nil {
				ended <- err
				return
			}
			select {
			case events <- e:
			case <-ctx.Done():
				ended <- ctx.Err()
				return
			}
		}
	}()
	for {
		timer := time.NewTimer(s.untilNext())
		select {
		case e := <-events:
			if e.Type == "ERROR" { // such as 410 Gone: the version is too old
				return volume.Errorf(volume.Unavailable, "nodes: the Kubernetes API ended the watch: %s", e.Object)
			}
			s.handle(e)
		case <-timer.C:
			s.tryDue(ctx)
		case <-ended:
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// event is one line of a watch (Kubernetes API concepts, "Efficient detection of changes").
type event struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

func (s *StartupTaints) handle(e event) {
	var n node
	if json.Unmarshal(e.Object, &n) != nil || n.Metadata.Name == "" {
		return
	}
	if e.Type == "DELETED" {
		delete(s.waiting, n.Metadata.Name)
		return
	}
	s.note(n)
}

// list reads all nodes and returns the version of the list.
func (s *StartupTaints) list(ctx context.Context) (version string, err error) {
	for next := ""; ; {
		var page struct {
			Metadata struct {
				ResourceVersion string `json:"resourceVersion"`
				Continue        string `json:"continue"`
			} `json:"metadata"`
			Items []node `json:"items"`
		}
		query := url.Values{"limit": {fmt.Sprint(pageSize)}}
		if next != "" {
			query.Set("continue", next)
		}
		if err := s.API.get(ctx, "nodes", "/api/v1/nodes?"+query.Encode(), &page); err != nil {
			return "", err
		}
		for _, n := range page.Items {
			s.note(n)
		}
		if next = page.Metadata.Continue; next == "" {
			return page.Metadata.ResourceVersion, nil
		}
	}
}

// note remembers a node as long as it has the taint.
func (s *StartupTaints) note(n node) {
	at := -1
	for i, t := range n.Spec.Taints {
		if t.Key == contract.StartupTaint(s.Driver) {
			at = i
		}
	}
	switch waiting := s.waiting[n.Metadata.Name]; {
	case at < 0:
		delete(s.waiting, n.Metadata.Name)
	case waiting != nil:
		waiting.taint = at
	default:
		s.waiting[n.Metadata.Name] = &attempt{taint: at, delay: firstDelay}
	}
}

// untilNext is the time until a node is due; a long time if none waits.
func (s *StartupTaints) untilNext() time.Duration {
	wait := time.Hour
	for _, a := range s.waiting {
		wait = min(wait, max(0, time.Until(a.next)))
	}
	return wait
}

// tryDue looks at each node that is due, and removes the taint where the driver is ready.
func (s *StartupTaints) tryDue(ctx context.Context) {
	for name, a := range s.waiting {
		if time.Now().Before(a.next) {
			continue
		}
		ready, err := s.ready(ctx, name)
		if err == nil && ready {
			err = s.remove(ctx, name, a.taint)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && ready, volume.Is(err, volume.Conflict), volume.Is(err, volume.NotFound):
			// removed, by this replica or another; or the taint has moved, and the event of that change is on its way
		case err != nil && a.delay == firstDelay:
			s.Log.WarnContext(ctx, "cannot remove the start-up taint of a node; the driver tries again", "node", name, "error", err)
		}
		a.next, a.delay = time.Now().Add(a.delay), min(2*a.delay, longestDelay)
	}
}

// ready reports whether the node's CSINode has the driver with an attach limit.
func (s *StartupTaints) ready(ctx context.Context, nodeName string) (bool, error) {
	var csiNode struct {
		Spec struct {
			Drivers []struct {
				Name        string `json:"name"`
				Allocatable *struct {
					Count *int64 `json:"count"`
				} `json:"allocatable"`
			} `json:"drivers"`
		} `json:"spec"`
	}
	err := s.API.get(ctx, "CSINode "+nodeName, "/apis/storage.k8s.io/v1/csinodes/"+url.PathEscape(nodeName), &csiNode)
	if volume.Is(err, volume.NotFound) { // kubelet makes it when the first driver registers
		return false, nil
	}
	for _, d := range csiNode.Spec.Drivers {
		if d.Name == s.Driver && d.Allocatable != nil && d.Allocatable.Count != nil {
			return true, err
		}
	}
	return false, err
}

// remove removes the taint, if it still stands at its index.
func (s *StartupTaints) remove(ctx context.Context, nodeName string, at int) error {
	path := fmt.Sprintf("/spec/taints/%d", at)
	err := s.API.patch(ctx, "node "+nodeName, "/api/v1/nodes/"+url.PathEscape(nodeName), []map[string]string{
		{"op": "test", "path": path + "/key", "value": contract.StartupTaint(s.Driver)},
		{"op": "remove", "path": path},
	})
	if err == nil {
		s.Log.InfoContext(ctx, "removed the start-up taint of a node: the driver is ready there", "node", nodeName, "taint", contract.StartupTaint(s.Driver))
	}
	return err
}

// sleep waits for d; false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
