package controller

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// token is a position in the lists of all clouds. Its text is "<id>[,<microseconds>[,backup]][:<cloud>]"; tokens of upstream have that form too.
type token struct {
	position volume.Position
	backups  bool // the position is in the list of backups
	cloud    string
}

func (t token) snapshotPosition() volume.SnapshotPosition {
	p := volume.SnapshotPosition{Backups: t.backups}
	p.After, p.Created = volume.SnapshotID(t.position.After), t.position.Created
	return p
}

func snapshotToken(p volume.SnapshotPosition, cloud string) token {
	return token{position: volume.Position{After: volume.ID(p.After), Created: p.Created}, backups: p.Backups, cloud: cloud}
}

// backupSuffix marks a position in the list of backups.
const backupSuffix = ",backup"

func (t token) String() string {
	text := string(t.position.After)
	if !t.position.Created.IsZero() {
		text += "," + strconv.FormatInt(t.position.Created.UnixMicro(), 10)
	}
	if t.backups {
		text += backupSuffix
	}
	if t.cloud != "" {
		text += ":" + t.cloud
	}
	return text
}

// parseToken reads a token; an empty one is the beginning. Aborted for an invalid one, so that the caller lists from the beginning (CSI
// specification, ListVolumes errors).
func (s *Server) parseToken(text string) (token, error) {
	if text == "" {
		return token{cloud: s.clouds[0]}, nil
	}
	rest, cloud, _ := strings.Cut(text, ":")
	rest, backups := strings.CutSuffix(rest, backupSuffix)
	id, created, hasTime := strings.Cut(rest, ",")
	t := token{position: volume.Position{After: volume.ID(id)}, backups: backups, cloud: cloud}
	if hasTime {
		micros, err := strconv.ParseInt(created, 10, 64)
		if err != nil {
			return token{}, invalidToken(text)
		}
		t.position.Created = time.UnixMicro(micros).UTC()
	}
	if _, exists := s.o.Clouds[cloud]; !exists || (id != "" || hasTime || backups) && !t.position.After.Exists() {
		return token{}, invalidToken(text)
	}
	return t, nil
}

func invalidToken(text string) error {
	return volume.Errorf(volume.Busy, "the starting token %q is not valid any more; list again from the beginning", text)
}

type listRequest interface {
	GetMaxEntries() int32
	GetStartingToken() string
}

func validateMaxEntries(req listRequest) error {
	if req.GetMaxEntries() < 0 {
		return volume.Errorf(volume.InvalidArgument, "max_entries is %d; it must not be negative", req.GetMaxEntries())
	}
	return nil
}

// volumeListStart returns the position at which a list of volumes starts.
func (s *Server) volumeListStart(req listRequest) (token, error) {
	if err := validateMaxEntries(req); err != nil {
		return token{}, err
	}
	start, err := s.parseToken(req.GetStartingToken())
	if err == nil && start.backups {
		err = invalidToken(req.GetStartingToken())
	}
	return start, err
}

// nextCloud returns the beginning of the list of the next cloud, if there is one.
func (s *Server) nextCloud(t token) (token, bool) {
	i := slices.Index(s.clouds, t.cloud) + 1
	if i >= len(s.clouds) {
		return token{}, false
	}
	return token{cloud: s.clouds[i]}, true
}
