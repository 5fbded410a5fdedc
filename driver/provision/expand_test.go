package provision

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/driver/volume/volumetest"
)

func growing(c *volumetest.Cloud) *Service { return New(c, c, Options{}) }

func TestExpandReturnsOnceCinderShowsTheSize(t *testing.T) {
	for _, status := range []volume.Status{volume.Available, volume.InUse} {
		synctest.Test(t, func(t *testing.T) {
			c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: status, Size: volume.GiB(1)})
			v, err := growing(c).Expand(volumetest.Within(t, 60), volumetest.VolumeID(1), volume.Range{Required: volume.GiB(2) + 1})
			if err != nil || v.Size != volume.GiB(3) || v.Status != status {
				t.Errorf("got %v, %v", v, err)
			}
			if c.CountPrefix("Extend "+string(volumetest.VolumeID(1))) != 1 || !strings.Contains(c.Calls[1], map[bool]string{true: "true", false: "false"}[status == volume.InUse]) {
				t.Error(c.Calls)
			}
		})
	}
}

func TestExpandOfALargeEnoughVolumeSendsNothing(t *testing.T) {
	c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: "error_extending", Size: volume.GiB(5)})
	v, err := growing(c).Expand(t.Context(), volumetest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
	if err != nil || v.Size != volume.GiB(5) || c.Count("Extend") != 0 {
		t.Errorf("got %v, %v after %v", v, err, c.Calls)
	}
}

func TestExpandWaitsForAnExpansionInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: "extending", Size: volume.GiB(1)})
		c.Later(volumetest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Size = volume.Available, volume.GiB(2) })
		v, err := growing(c).Expand(volumetest.Within(t, 60), volumetest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
		if err != nil || v.Size != volume.GiB(2) || c.Count("Extend") != 0 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
	})
}

func TestExpandThatFailsReturnsTheReason(t *testing.T) {
	for _, outcome := range []volume.Status{"error_extending", volume.Available} {
		synctest.Test(t, func(t *testing.T) {
			c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Available, Size: volume.GiB(1)})
			c.Outcome, c.Reason = outcome, "the pool is full"
			_, err := growing(c).Expand(volumetest.Within(t, 60), volumetest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
			volumetest.WantKind(t, err, volume.Failed, true)
			if !strings.Contains(err.Error(), "the pool is full") {
				t.Error(err)
			}
		})
	}
}

func TestExpandRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		id   volume.ID
		size volume.Range
		kind volume.Kind
	}{
		"no volume":        {volumetest.VolumeID(9), volume.Range{Required: volume.GiB(2)}, volume.NotFound},
		"no volume's id":   {"vol", volume.Range{Required: volume.GiB(2)}, volume.NotFound},
		"above the limit":  {volumetest.VolumeID(1), volume.Range{Required: 1, Limit: volume.GiB(3)}, volume.OutOfRange},
		"no GiB fits":      {volumetest.VolumeID(1), volume.Range{Required: 1, Limit: 2}, volume.OutOfRange},
		"a negative range": {volumetest.VolumeID(1), volume.Range{Required: -1}, volume.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := growing(volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: volume.Available, Size: volume.GiB(5)})).Expand(t.Context(), test.id, test.size)
			volumetest.WantKind(t, err, test.kind, false)
		})
	}
}

func testExpandIn(t *testing.T, status volume.Status) {
	synctest.Test(t, func(t *testing.T) {
		c := volumetest.NewCloud(volume.Volume{ID: volumetest.VolumeID(1), Status: status, Size: volume.GiB(1)})
		_, err := growing(c).Expand(volumetest.Within(t, 60), volumetest.VolumeID(1), volume.Range{Required: volume.GiB(2)})
		sent := c.Count("Extend") == 1
		wantByExtendStatus(t, status, err, sent)
	})
}

func TestExpandInEveryStatus(t *testing.T) {
	for _, status := range volumetest.EveryStatus {
		t.Run(string(status), func(t *testing.T) { testExpandIn(t, status) })
	}
}
