package node

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/host/limit"
	"github.com/cinder-csi/cinder-csi/driver/host/metadata"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// numbers keeps what monitoring would read.
type numbers struct {
	limit   map[string]int64
	changed bool
	volumes func() int

	registered bool
	health     map[string][]string
}

func (n *numbers) VolumeLimit(terms map[string]int64) { n.limit = terms }
func (n *numbers) CountVolumes(count func() int)      { n.volumes = count }
func (n *numbers) ZoneChanged(changed bool)           { n.changed = changed }
func (n *numbers) Registered(registered bool)         { n.registered = registered }
func (n *numbers) VolumeHealth(id string, reasons []string) {
	if n.health == nil {
		n.health = map[string][]string{}
	}
	n.health[id] = reasons
}

func TestAnUnsetAttachLimitIsComputedAndNeverZero(t *testing.T) {
	t.Parallel()
	reserve := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		options  Options
		capacity limit.Capacity
		want     int64
	}{
		"an empty server of type pc":         {Options{}, limit.Capacity{Bus: "virtio", Free: 25}, 24},
		"half full":                          {Options{}, limit.Capacity{Bus: "virtio", Attached: 12, Free: 13}, 24},
		"one on its way":                     {Options{}, limit.Capacity{Bus: "virtio", Attached: 12, Arriving: 1, Free: 12}, 24},
		"a larger reserve":                   {Options{AttachReserve: reserve(4)}, limit.Capacity{Bus: "virtio", Free: 25}, 21},
		"no reserve":                         {Options{AttachReserve: reserve(0)}, limit.Capacity{Bus: "virtio", Free: 25}, 25},
		"q35 as Nova makes it by default":    {Options{}, limit.Capacity{Bus: "virtio", Free: 1}, 1},
		"no free slot":                       {Options{}, limit.Capacity{Bus: "virtio"}, 1},
		"virtio-scsi":                        {Options{}, limit.Capacity{Bus: "scsi", Attached: 3, Free: 124, Foreign: 1}, 126},
		"sysfs tells nothing":                {Options{}, limit.Capacity{Unknown: "no sysfs", Attached: 3}, defaultAttachLimit},
		"set":                                {Options{AttachLimit: 7}, limit.Capacity{Bus: "virtio", Free: 25}, 7},
		"set to what only upstream can mean": {Options{AttachLimit: -1}, limit.Capacity{Bus: "virtio", Free: 25}, 24},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &fakeMachine{server: metadata.Server{ID: vol}, capacity: c.capacity}
			got, err := serverOf(m, c.options).NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
			if err != nil || got.GetMaxVolumesPerNode() != c.want {
				t.Errorf("want %d, got %v, %v", c.want, got, err)
			}
		})
	}
}

func TestEveryTermOfTheLimitIsLoggedOnceAndMeasured(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	n := &numbers{}
	m := &fakeMachine{server: metadata.Server{ID: vol}, capacity: limit.Capacity{Bus: "virtio", Attached: 2, Arriving: 1, Free: 22, Foreign: 1}}
	s := newServer(m, Options{ForeignVolumes: []volume.ID{vol}, Metrics: n, Log: slog.New(slog.NewTextHandler(&log, nil))})
	ask := func() int64 {
		got, err := s.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
		step(t, "NodeGetInfo", err)
		return got.GetMaxVolumesPerNode()
	}
	for range 3 {
		if got := ask(); got != 24 {
			t.Errorf("want 24, got %d", got)
		}
	}
	want := map[string]int64{"limit": 24, "attached": 2, "arriving": 1, "free": 22, "foreign": 1, "reserve": 1}
	if diff := cmp.Diff(want, n.limit); diff != "" {
		t.Errorf("metric (-want +got):\n%s", diff)
	}
	const line = `limit=24 source="the virtio disks of this server" attached=2 arriving=1 free=22 reserve=1 foreign=1`
	if strings.Count(log.String(), line) != 1 {
		t.Errorf("want one line with every term, got:\n%s", log.String())
	}
	m.capacity.Attached = 5 // kubelet does not ask again for each volume
	if got := n.volumes(); got != 6 {
		t.Errorf("want 5 attached volumes and 1 that arrives, got %d", got)
	}
	m.capacity.Attached = 2
	m.capacity.Free = 21 // a network card came
	if got := ask(); got != 23 || strings.Count(log.String(), "limit=") != 2 {
		t.Errorf("want the limit counted and logged again, got %d:\n%s", got, log.String())
	}
	m.capacity.Stale = "read the mount table: no such file"
	for range 2 {
		ask()
	}
	if n := strings.Count(log.String(), "as they were before this error: read the mount table"); n != 1 {
		t.Errorf("want one line on an earlier answer, got %d:\n%s", n, log.String())
	}
	if diff := cmp.Diff([]any{[]volume.ID{vol}}, m.calls[:1]); diff != "" {
		t.Errorf("foreign volumes (-want +got):\n%s", diff)
	}
}
