package attach

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// markedFor is how long a server counts as marked after a read showed it. Without it each attach and each detach reads the server: two
// requests more in the life of a volume, which has nine. Nova gives an ID to one server only. A mark that somebody removes counts until then.
const markedFor = 10 * time.Minute

// markedServers are those that a read has shown with the metadata or tags that servers with volumes must have.
type markedServers struct {
	required volume.ServerMetadata
	mu       sync.Mutex // never held across a call
	until    map[volume.ServerID]time.Time
}

func (m *markedServers) known(id volume.ServerID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Before(m.until[id])
}

func (m *markedServers) add(id volume.ServerID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.until == nil {
		m.until = map[volume.ServerID]time.Time{}
	}
	maps.DeleteFunc(m.until, func(_ volume.ServerID, until time.Time) bool { return !time.Now().Before(until) })
	m.until[id] = time.Now().Add(markedFor)
}

// checkServer returns an error if the server lacks metadata or a tag that every server with volumes must have. Verb says what it may not do.
// The node ID of a request comes from the CSINode, which kubelet may write. So a compromised node can name any server of the project, but it
// cannot write the metadata and tags of that server.
func (s *Service) checkServer(ctx context.Context, id volume.ServerID, verb string) error {
	if len(s.marked.required) == 0 || s.marked.known(id) {
		return nil
	}
	server, err := s.cloud.Server(ctx, id)
	if volume.Is(err, volume.NotFound) {
		return volume.NoServer(id)
	}
	if err != nil {
		return err
	}
	if pair := s.marked.required.Missing(server); pair != "" {
		return volume.Errorf(volume.NotOwned, "server %s %s no volume: it has %s neither in its metadata nor as a tag (--server-metadata). Only the node itself names this server, so look at it first: openstack server show %s. "+
			"If it is a node of this cluster, run: openstack server set --property %s %s", id, verb, pair, id, shell.Word(pair), id).Cause(cause.ServerForeign)
	}
	s.marked.add(id)
	return nil
}
