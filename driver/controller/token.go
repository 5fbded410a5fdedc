package controller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/paging"
)

// token is a position in the lists of all clouds. Its text is "<id>[,<microseconds>[,backup]][,listed=<n>][:<cloud>]"; tokens of upstream have that form too.
type token struct {
	position volume.Position
	backups  bool // the position is in the list of backups
	listed   int  // how many volumes of the cloud were listed so far: a cloud may show them without end
	cloud    string
}

// after is the position after n more volumes, the last of which is v. A caller that names a limit decides itself when to stop.
func (t token) after(v volume.Volume, n int, req listRequest) (token, error) {
	if t.position = volume.PositionOf(v); req.GetMaxEntries() == 0 {
		t.listed += n
	}
	if t.listed > paging.MaxItems {
		return t, endless("volumes", fmt.Errorf("%w: it has more than %d", paging.ErrEndless, paging.MaxItems))
	}
	return t, nil
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

const listedKey = ",listed="

func (t token) String() string {
	text := string(t.position.After)
	if !t.position.Created.IsZero() {
		text += "," + strconv.FormatInt(t.position.Created.UnixMicro(), 10)
	}
	if t.backups {
		text += backupSuffix
	}
	if t.listed > 0 {
		text += listedKey + strconv.Itoa(t.listed)
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
	rest, listed, hasListed := strings.Cut(rest, listedKey)
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
	if hasListed {
		n, err := strconv.ParseUint(listed, 10, 31)
		if err != nil {
			return token{}, invalidToken(text)
		}
		t.listed = int(n)
	}
	if _, exists := s.o.Clouds[cloud]; !exists || (id != "" || hasTime || backups) && !t.position.After.Exists() {
		return token{}, invalidToken(text)
	}
	return t, nil
}

func invalidToken(text string) error {
	return volume.Errorf(volume.Busy, "the starting token %q is not valid any more; list again from the beginning", text)
}

func endless(objects string, err error) error {
	return volume.Errorf(volume.Unavailable, "the %s of the project: %w; Cinder or a proxy in front of it has a fault. Report it to the administrator of the cloud", objects, err).Cause(cause.CloudAnswer)
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
