package controller

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// ControllerGetVolume implements csi.ControllerServer. The request has no secrets, so every cloud is asked.
func (s *Server) ControllerGetVolume(ctx context.Context, req *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, missing("volume id")
	}
	var failed error
	for _, name := range s.clouds {
		v, err := s.o.Clouds[name].Volumes.Get(ctx, volume.ID(req.GetVolumeId()))
		if err == nil {
			return &csi.ControllerGetVolumeResponse{
				Volume: s.described(v), Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: nodesOf(v)},
			}, nil
		}
		if !volume.Is(err, volume.NotFound) || failed == nil {
			failed = err // a cloud that cannot answer may have it
		}
	}
	return nil, failed
}

// described describes a volume that was made before.
func (s *Server) described(v volume.Volume) *csi.Volume {
	return &csi.Volume{VolumeId: string(v.ID), CapacityBytes: int64(v.Size)}
}

func nodesOf(v volume.Volume) []string {
	var nodes []string
	for _, a := range v.Attachments {
		if a.Server.Exists() { // a host that is no server of Nova's is no node
			nodes = append(nodes, string(a.Server))
		}
	}
	return nodes
}

// ListVolumes implements csi.ControllerServer. It lists every volume of the project, whoever made it, cloud by cloud:
// external-attacher takes a volume that is missing here for one that is not attached.
func (s *Server) ListVolumes(ctx context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	if req.GetMaxEntries() < 0 {
		return nil, volume.Errorf(volume.InvalidArgument, "max_entries is %d", req.GetMaxEntries())
	}
	at, err := s.parseToken(req.GetStartingToken())
	switch {
	case err != nil:
		return nil, err
	case at.backups:
		return nil, badToken(req.GetStartingToken())
	}
	answer := &csi.ListVolumesResponse{}
	room := int(req.GetMaxEntries())
	for {
		page, err := s.o.Clouds[at.cloud].Volumes.List(ctx, at.position, room)
		if volume.Is(err, volume.NotFound) {
			return nil, badToken(req.GetStartingToken())
		}
		if err != nil {
			return nil, err
		}
		for _, v := range page {
			answer.Entries = append(answer.Entries, &csi.ListVolumesResponse_Entry{
				Volume: s.described(v), Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: nodesOf(v)},
			})
		}
		more := true
		if len(page) > 0 && req.GetMaxEntries() > 0 {
			at.position = volume.PositionOf(page[len(page)-1])
		} else {
			at, more = s.nextCloud(at)
		}
		switch {
		case !more:
			return answer, nil
		case req.GetMaxEntries() == 0:
		case room <= len(page):
			answer.NextToken = at.String()
			return answer, nil
		default:
			room -= len(page)
		}
	}
}

// token is a place in the list of all clouds: "<id>[,<microseconds>[,backup]][:<cloud>]", which upstream's tokens are too.
type token struct {
	position volume.Position
	backups  bool // the place is in the list of backups
	cloud    string
}

// snapshots is the place of a token in the list of snapshots.
func (t token) snapshots() volume.SnapshotPosition {
	p := volume.SnapshotPosition{Backups: t.backups}
	p.After, p.Created = volume.SnapshotID(t.position.After), t.position.Created
	return p
}

func snapshotToken(p volume.SnapshotPosition, cloud string) token {
	return token{position: volume.Position{After: volume.ID(p.After), Created: p.Created}, backups: p.Backups, cloud: cloud}
}

// inBackups ends the place of a token in the list of backups.
const inBackups = ",backup"

func (t token) String() string {
	text := string(t.position.After)
	if !t.position.Created.IsZero() {
		text += "," + strconv.FormatInt(t.position.Created.UnixMicro(), 10)
	}
	if t.backups {
		text += inBackups
	}
	if t.cloud != "" {
		text += ":" + t.cloud
	}
	return text
}

// parseToken reads a token; an empty one is the beginning. One that cannot be read makes the caller start anew: Aborted (CSI
// specification, ListVolumes Errors).
func (s *Server) parseToken(text string) (token, error) {
	if text == "" {
		return token{cloud: s.clouds[0]}, nil
	}
	place, cloud, _ := strings.Cut(text, ":")
	place, backups := strings.CutSuffix(place, inBackups)
	id, created, timed := strings.Cut(place, ",")
	t := token{position: volume.Position{After: volume.ID(id)}, backups: backups, cloud: cloud}
	if timed {
		micros, err := strconv.ParseInt(created, 10, 64)
		if err != nil {
			return token{}, badToken(text)
		}
		t.position.Created = time.UnixMicro(micros).UTC()
	}
	if _, known := s.o.Clouds[cloud]; !known || (id != "" || timed || backups) && !t.position.After.Exists() {
		return token{}, badToken(text)
	}
	return t, nil
}

func badToken(text string) error {
	return volume.Errorf(volume.Busy, "the list's token %q is no longer good; list from the beginning", text)
}

// nextCloud is the beginning of the cloud after t's.
func (s *Server) nextCloud(t token) (token, bool) {
	i := slices.Index(s.clouds, t.cloud) + 1
	if i >= len(s.clouds) {
		return token{}, false
	}
	return token{cloud: s.clouds[i]}, true
}
