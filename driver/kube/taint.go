package kube

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// StartupTaints removes the start-up taint of nodes once the driver is ready there.
//
// A new node is Ready before the driver has registered with kubelet. Until then the scheduler knows no attach limit of the node, and places
// more pods with volumes there than it can attach. So the administrator lets nodes join with a taint whose key is contract.StartupTaint. The
// driver removes it once the CSINode object shows the driver with an attach limit (Kubernetes API, CSINode, spec.drivers[].allocatable).
//
// These are the states of a node. Only waiting nodes are in memory:
//
//	no taint --(a list or an event shows the taint)--> waiting
//	waiting --(its time has come)--> look at its CSINode
//	    the driver is not ready, or an error --> waiting, twice as long
//	    the driver is ready: remove the taint by a patch
//	        removed, or the node is gone --> no taint
//	        the taint is not at its index --> waiting, until the event of that change
//	waiting --(an event shows no taint, or the node was deleted)--> no taint
//
// It needs no elected leader. The patch names the taint by its index and tests its key. So two replicas may
// both send it: the second one fails and does no harm.
type StartupTaints struct {
	API    *API
	Driver string // the name that the driver registers
	Log    *slog.Logger

	waiting map[string]*attempt // by name
}

// attempt is the next look at the CSINode of a node.
type attempt struct {
	taint   int // index of the taint in spec.taints
	at      time.Time
	backoff backoff
}

// How often the driver looks at the CSINode of a tainted node, and how long a failed watch pauses. A node registers its driver a few seconds
// after it is Ready. The delay doubles up to the longest one, because a node may never become ready.
const (
	firstDelay   = time.Second
	longestDelay = 30 * time.Second
)

// backoff is the last delay; zero before the first.
type backoff time.Duration

func (b *backoff) next() time.Duration {
	*b = min(max(2**b, backoff(firstDelay)), backoff(longestDelay))
	return time.Duration(*b)
}

// Run watches the nodes until ctx ends. Without the right to do so it logs that once, and tries again.
func (s *StartupTaints) Run(ctx context.Context) {
	denied := false
	for pause := backoff(0); ctx.Err() == nil; {
		began := time.Now()
		switch err := s.follow(ctx); {
		case ctx.Err() != nil:
			return
		case volume.Is(err, volume.PermissionDenied) && !denied:
			denied = true
			s.Log.ErrorContext(ctx, "cannot remove start-up taints; allow the service account of the driver to list, watch and patch nodes "+
				"and to get csinodes", "error", err)
		case err != nil:
			s.Log.DebugContext(ctx, "the watch of the nodes failed; the driver starts it again", "error", err)
		}
		if time.Since(began) > watchTime/2 {
			pause = 0
		}
		if volume.Sleep(ctx, pause.next()) != nil {
			return
		}
	}
}

// follow lists the nodes, and then handles their changes and the waiting nodes for the time of one watch.
func (s *StartupTaints) follow(ctx context.Context) error {
	s.waiting = map[string]*attempt{}
	version, err := list(ctx, s.API, "nodes", "/api/v1/nodes", s.note)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, watchTime+30*time.Second)
	defer cancel()
	events, err := s.API.watchNodes(ctx, version)
	if err != nil {
		return err
	}
	for {
		select {
		case e, open := <-events:
			switch n, isNode := e.node(); {
			case !open:
				return nil
			case e.Type == "ERROR": // such as 410 Gone: the version is too old
				return volume.Errorf(volume.Unavailable, "nodes: the Kubernetes API ended the watch: %s", e.Object).Cause(cause.KubernetesUnreachable)
			case isNode && e.Type == "DELETED":
				delete(s.waiting, n.Metadata.Name)
			case isNode:
				s.note(n)
			}
		case <-time.After(s.untilNext()):
			s.tryDue(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// note remembers a node as long as it has the taint.
func (s *StartupTaints) note(n node) {
	index, tainted := n.taint(contract.StartupTaint(s.Driver))
	switch waiting := s.waiting[n.Metadata.Name]; {
	case !tainted:
		delete(s.waiting, n.Metadata.Name)
	case waiting != nil:
		waiting.taint = index
	default:
		s.waiting[n.Metadata.Name] = &attempt{taint: index}
	}
}

// untilNext is the time until a node is due; a long time if none waits.
func (s *StartupTaints) untilNext() time.Duration {
	wait := time.Hour
	for _, a := range s.waiting {
		wait = min(wait, max(0, time.Until(a.at)))
	}
	return wait
}

func (s *StartupTaints) tryDue(ctx context.Context) {
	for name, a := range s.waiting {
		if time.Now().Before(a.at) {
			continue
		}
		done, err := s.try(ctx, name, a.taint)
		if ctx.Err() != nil {
			return
		}
		if done {
			delete(s.waiting, name)
			continue
		}
		if err != nil && a.backoff == 0 {
			s.Log.WarnContext(ctx, "cannot remove the start-up taint of a node; the driver tries again", "node", name, "error", err)
		}
		a.at = time.Now().Add(a.backoff.next())
	}
}

// try removes the taint of a node if the driver is ready there. It reports whether the node needs nothing more.
func (s *StartupTaints) try(ctx context.Context, nodeName string, index int) (done bool, err error) {
	ready, err := s.ready(ctx, nodeName)
	if err != nil || !ready {
		return false, err
	}
	switch err := s.remove(ctx, nodeName, index); {
	case volume.Is(err, volume.Conflict): // another replica removed the taint, or it has moved; the event of that change is on its way
		return false, nil
	case volume.Is(err, volume.NotFound): // the node is gone
		return true, nil
	default:
		return err == nil, err
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
		s.Log.InfoContext(ctx, "removed the start-up taint of a node: the driver is ready there",
			"node", nodeName, "taint", contract.StartupTaint(s.Driver))
	}
	return err
}
