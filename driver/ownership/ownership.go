// Package ownership answers one question: whose is an object of the cloud, this cluster's, another's, or is that unknown?
//
// Who may write PersistentVolumes or VolumeSnapshotContents in one cluster can name any object of the project, and the driver has the rights of
// the project. Guard asks the question where the driver reads objects for RPCs: by ID, by name, and in lists. So no RPC can forget it.
//
// The package keeps nothing in memory and changes nothing in the cloud.
package ownership

import (
	"context"
	"strconv"
	"strings"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/idempotent"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/shell"
)

// Rule says for whom the driver acts.
type Rule struct {
	Owner idempotent.Owner
	// Strict refuses an object whose owner is unknown. Otherwise the driver serves one without a mark: a static volume, or one of another program.
	Strict bool
	// Servers is the metadata, or are the tags, of every server that may have volumes of this cluster (--server-metadata); empty where any server may.
	Servers volume.ServerMetadata
}

type owner int

const (
	unknown owner = iota // neither the object nor its volume has a mark
	mine
	theirs
)

// verdict is the answer with its reason, which completes a sentence that begins with the object.
type verdict struct {
	owner  owner
	reason string
}

// byMark reads the mark in the metadata of an object.
func (r Rule) byMark(metadata map[string]string) verdict {
	switch mark := metadata[contract.MetadataCluster]; mark {
	case "":
		return verdict{unknown, "carries no mark of a cluster"}
	case r.Owner.Cluster:
		return verdict{mine, ""}
	default:
		if r.Strict { // the reader of the message may be an administrator of a guest, and clusters have names of customers
			return verdict{theirs, "carries the mark of another cluster"}
		}
		return verdict{theirs, "carries the mark of cluster " + strconv.Quote(mark) + ", and this driver serves cluster " + strconv.Quote(r.Owner.Cluster)}
	}
}

// ofVolume reads the marks of a volume. A restore replaces the metadata by that of the volume that was backed up. Until the driver has
// written the mark again, only the description says for whom the volume is.
func (r Rule) ofVolume(v volume.Volume) verdict {
	token, _, restored := contract.ParseDescriptionOfRestored(v.Description)
	switch {
	case !restored || token == v.Metadata[contract.MetadataRequest]:
		return r.byMark(v.Metadata)
	case token == r.Owner.Token(v.Name):
		return verdict{mine, ""}
	}
	return verdict{theirs, "is the target of a restore that the driver of another cluster began"}
}

// mostServers bounds the requests for one volume. The cloud chooses how many attachments it shows. Of a volume on more servers the
// first decide, so that its own cluster can detach it.
const mostServers = 64

// volume is ofVolume for a volume that a request names. One without a mark is theirs if a server has it that is no node of this cluster.
func (g guard) volume(ctx context.Context, v volume.Volume) (verdict, error) {
	answer := g.rule.ofVolume(v)
	if answer.owner != unknown || len(g.rule.Servers) == 0 {
		return answer, nil
	}
	attachments := v.Attachments
	// Cinder shows only complete attachments with the volume. A server that is shelved or rebuilt has a reservation, in several statuses. Beside a
	// complete attachment only a multiattach volume has that of another server.
	if (len(attachments) == 0 || v.Multiattach) && v.Status != volume.Available {
		var err error
		if attachments, err = g.Cloud.VolumeAttachments(ctx, v.ID); err != nil {
			return answer, err
		}
	}
	for _, a := range attachments[:min(len(attachments), mostServers)] {
		if !a.Server.Exists() {
			continue
		}
		server, err := g.Cloud.Server(ctx, a.Server)
		if err == nil && g.rule.Servers.Missing(server) != "" {
			return verdict{theirs, "carries no mark of a cluster, and a server has it that --server-metadata excludes"}, nil
		}
		if err := volume.IgnoreNotFound(err); err != nil {
			return answer, err
		}
	}
	return answer, nil
}

// snapshot is the answer for a snapshot or backup. One without a mark, which a person or a backup program made, is its volume's.
func (g guard) snapshot(ctx context.Context, p volume.Snapshot) (verdict, error) {
	answer := g.rule.byMark(p.Metadata)
	if answer.owner != unknown || !p.Volume.Exists() {
		return answer, nil
	}
	v, err := g.Cloud.Volume(ctx, p.Volume)
	if err != nil { // without its volume a backup belongs to nobody that is known
		return answer, volume.IgnoreNotFound(err)
	}
	if answer, err = g.volume(ctx, v); answer.owner == theirs {
		answer.reason = "has no mark, and its volume " + answer.reason
	}
	return answer, err
}

// allow returns nil if the driver may act on an object. Noun is that of the OpenStack client.
func (g guard) allow(noun, id string, answer verdict, err error) error {
	object := strings.TrimPrefix(noun, "volume ") + " " + id
	switch kind := volume.KindOf(err); {
	case err != nil && (kind == volume.PermissionDenied || kind == volume.Unimplemented || kind == volume.NotFound):
		return volume.Errorf(volume.NotOwned, "the driver cannot read whose %s is, so it leaves that alone (--protect-other-clusters): %w", object, err)
	case err != nil:
		return err
	case answer.owner == theirs:
		return volume.Errorf(volume.NotOwned, "%s %s. With --protect-other-clusters the driver leaves the objects of other clusters alone", object, answer.reason)
	case answer.owner == unknown && g.rule.Strict:
		return volume.Errorf(volume.NotOwned, "%s %s. With --protect-other-clusters=strict the driver leaves such objects alone. If it belongs to this cluster, take it over: %s",
			object, answer.reason, g.takeOver(noun, id)).Cause(cause.VolumeUnmarked)
	}
	return nil
}

// takeOver is the command that gives an object the mark of this cluster.
func (g guard) takeOver(noun, id string) string {
	client := "openstack "
	if noun == backupNoun {
		client += "--os-volume-api-version 3.43 "
	}
	return client + noun + " set --property " + shell.Word(contract.MetadataCluster+"="+g.rule.Owner.Cluster) + " " + id
}
