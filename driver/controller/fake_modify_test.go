package controller

import (
	"context"

	"github.com/cinder-csi/cinder-csi/driver/provision"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// changes is what a fake was asked about changes, room and health, and what it answers.
type changes struct {
	change   provision.Change
	room     provision.CapacityRequest
	capacity provision.Capacity
	ailments map[volume.ID][]volume.HealthIssue
}

func (f *fake) Modify(_ context.Context, id volume.ID, c provision.Change) error {
	f.change, f.calls = c, append(f.calls, "modify "+string(id))
	return f.err
}

func (f *fake) Capacity(_ context.Context, r provision.CapacityRequest) (provision.Capacity, error) {
	f.room, f.calls = r, append(f.calls, "capacity")
	return f.capacity, f.err
}

func (f *fake) Health(ctx context.Context, id volume.ID) (volume.Health, error) {
	v, err := f.Get(ctx, id)
	return volume.Health{Volume: v, Issues: f.ailments[id]}, err
}

func (f *fake) ListHealth(ctx context.Context, p volume.Position, limit int) ([]volume.Health, error) {
	page, err := f.List(ctx, p, limit)
	var all []volume.Health
	for _, v := range page {
		all = append(all, volume.Health{Volume: v, Issues: f.ailments[v.ID]})
	}
	return all, err
}
