package idempotent

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// Owner identifies this driver in one cluster. The metadata of each object has it, so that the driver recognises what it created.
type Owner struct {
	Driver  string            // the CSI driver name
	Cluster string            // the cluster ID
	Common  map[string]string // metadata of every object
}

// Token identifies the create request of a name. It is the same for every retry and replica.
func (o Owner) Token(name string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{o.Driver, o.Cluster, name}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// Metadata returns the metadata of a new object: the common metadata, more, the cluster ID and the token. A later one replaces an earlier one.
func (o Owner) Metadata(name string, more map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, o.Common)
	maps.Copy(all, more)
	all[contract.MetadataCluster] = o.Cluster
	all[contract.MetadataRequest] = o.Token(name)
	return all
}

// Marked reports whether metadata shows that this owner created the object of that name.
func (o Owner) Marked(name string, metadata map[string]string) bool {
	return metadata[contract.MetadataRequest] == o.Token(name) && metadata[contract.MetadataCluster] == o.Cluster
}
