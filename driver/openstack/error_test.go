package openstack

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
)

// answerCause is an answer of Cinder or Nova, and the cause that events, logs and metrics name for it.
type answerCause struct {
	status     int
	verb, text string
	want       cause.ID
}

var answerCauses = []answerCause{
	{400, "delete volume", "Unable to delete encryption key", cause.CloudKeyManager},
	{400, "delete volume", "no", cause.VolumeDependents},
	{400, "attach volume", "volume a is already attached to instances: b", cause.AttachElsewhere},
	{400, "attach volume", "Instance and volume are not in the same availability_zone.", cause.AttachZone},
	{400, "attach volume", "Multiattach volumes are only supported starting with compute API version 2.60", cause.CloudUnsupported},
	{400, "attach volume", "Volume a has 'multiattach' set, which is not supported for this instance.", cause.CloudUnsupported},
	{400, "attach volume", "Attaching multiattach volumes is not supported for shelved-offloaded instances.", cause.ServerShelved},
	{400, "delete snapshot", "no", cause.VolumeDependents},
	{400, "delete backup", "no", cause.VolumeDependents},
	{400, "create snapshot", "Invalid volume: Snapshot cannot be created while volume is migrating.", cause.SnapshotRefused},
	{400, "create snapshot", "Modification operations are not allowed on frozen storage backends.", cause.SnapshotRefused},
	{400, "list attachments", "no", cause.CloudUnsupported},
	{400, "read messages", "no", cause.CloudUnsupported},
	{400, "create volume", "Key manager error", cause.CloudKeyManager},
	{400, "create volume", "Originating snapshot status must be one of these", cause.CreateSource},
	{400, "create volume", "Availability zone 'nope' is invalid.", cause.CreateZone},
	{400, "retype volume", "retypes affecting multiattach are only allowed on available volumes", cause.VolumeModifyError},
	{400, "retype volume", "Retype needs volume to be in available or in-use state", cause.VolumeModifyError},
	{400, "retype volume", "no", cause.VolumeModifyError},
	{401, "any request", "no", cause.CloudCredentials},
	{403, "attach volume", "The maximum allowed number of disk devices (26) to attach has been exceeded.", cause.AttachLimit},
	{403, "any request", "Quota exceeded for volumes", cause.QuotaExceeded},
	{403, "any request", "no", cause.CloudRights},
	{404, "create volume", "Volume type with name nope could not be found.", cause.CreateType},
	{404, "retype volume", "Volume type with name nope could not be found.", cause.CreateType},
	{405, "any request", "no", cause.CloudUnsupported},
	{406, "any request", "no", cause.CloudUnsupported},
	{409, "attach volume", "Cannot 'attach_volume' instance while it is in vm_state error", cause.ServerError},
	{409, "any request", "Instance a is locked", cause.ServerLocked},
	{409, "any request", "Service is unavailable at this time.", cause.DetachHostDown},
	{413, "any request", "This request was rate-limited.", cause.CloudRateLimited},
	{413, "any request", "Requested volume size 9G is larger than maximum allowed limit 5G.", cause.QuotaVolumeSize},
	{413, "any request", "VolumeLimitExceeded: Maximum number of volumes allowed (10) exceeded", cause.QuotaVolumes},
	{413, "any request", "Maximum number of snapshots allowed (20) exceeded", cause.QuotaSnapshots},
	{413, "any request", "Maximum number of backups allowed (10) exceeded", cause.QuotaBackups},
	{413, "any request", "Requested backup exceeds allowed Backup gigabytes quota.", cause.QuotaBackups},
	{413, "any request", "Requested volume or snapshot exceeds allowed gigabytes quota.", cause.QuotaGigabytes},
	{413, "any request", "no", cause.QuotaExceeded},
	{429, "any request", "no", cause.CloudRateLimited},
	{498, "any request", "no", cause.CloudRateLimited},
	{501, "any request", "no", cause.CloudUnsupported},
}

func TestAnAnswerHasItsCause(t *testing.T) {
	t.Parallel()
	for _, a := range answerCauses {
		if _, got := kindOf(a.status, a.verb, a.text); got != a.want {
			t.Errorf("%d for %s, %q: cause %s, want %s", a.status, a.verb, a.text, got, a.want)
		}
	}
	for _, rule := range errorRules {
		decides := func(a answerCause) bool {
			return a.status == rule.status && (rule.verb == "" || rule.verb == a.verb) && strings.Contains(a.text, rule.text) && a.want == rule.cause
		}
		if rule.cause != "" && !slices.ContainsFunc(answerCauses, decides) {
			t.Errorf("no row has an answer for %+v", rule)
		}
	}
}

// A service that has moved leaves a proxy without a backend, or a host that does not answer. An answer of the service proves that it is there.
func TestAnswersThatMayMeanThatTheServiceHasMoved(t *testing.T) {
	t.Parallel()
	for status, moved := range map[int]bool{404: true, 403: true, 500: false, 501: true, 502: true, 503: true, 504: true} {
		for _, proxy := range []bool{true, false} {
			a := answer{status: status, body: "no"}
			if proxy {
				a.header = map[string]string{"X-Openstack-Request-Id": ""}
			}
			c, _ := connect(t, a)
			_, err := c.Volume(t.Context(), volumeID)
			if got := mayHaveMoved(err); got != (moved && proxy) {
				t.Errorf("HTTP %d, of a proxy %t: %t for %v", status, proxy, got, err)
			}
		}
	}
	c, _ := connect(t, answer{status: 200, body: `{"volume": {"name": "` + strings.Repeat("x", 9<<20) + `"}}`})
	if _, err := c.Volume(t.Context(), volumeID); !errors.Is(err, cloud.ErrTooLarge) || mayHaveMoved(err) {
		t.Errorf("an answer that is too large: %v", err)
	}
}
