package provision

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// Capacity is how much a project may still create, in bytes.
type Capacity struct {
	// Available is the sum of all new volumes: Unlimited where no quota limits it.
	Available volume.Size
	// Smallest and Largest limit the size of a single volume; 0 means no limit other than Available.
	Smallest, Largest volume.Size
}

// Unlimited means that no quota limits the capacity: 1 EiB, more than any cloud has and less than a counter of bytes holds.
const Unlimited = volume.Size(1) << 60

// Capacity returns what the quotas of the project leave for volumes of the type and zones of a spec. A quota is of gigabytes or of volumes, in total or for the type. Only administrators
// can see the free space of backends. The capacity is zero in a zone that Cinder does not have, and for several
// servers on a type that allows one. It is also zero where the quota of volumes is used up. InvalidArgument for an unknown type.
func (s *Service) Capacity(ctx context.Context, spec CreateSpec) (Capacity, error) {
	limits, err := s.quotas.read(ctx, s.cloud)
	if err != nil {
		return Capacity{}, err
	}
	t := limits.defaultType
	if spec.Type != "" {
		if t, err = findType(limits.types, spec.Type); err != nil {
			return Capacity{}, err
		}
	}
	zones, _, err := s.candidateZones(ctx, spec)
	if existing, _ := s.volumeZones(ctx); spec.Zone != "" && len(existing) > 0 && !slices.Contains(existing, spec.Zone) {
		return Capacity{}, nil
	}
	switch {
	case volume.Is(err, volume.NotInZone):
		return Capacity{}, nil
	case err != nil:
		return Capacity{}, err
	case !allowsAnyOf(t, zones), spec.Multiattach && singleAttach(t):
		return Capacity{}, nil
	}
	return limits.capacity(t), nil
}

type projectLimits struct {
	quotas      map[string]volume.Quota
	types       []volume.Type
	defaultType volume.Type // zero where there is none
	readAt      time.Time
}

func (l projectLimits) capacity(t volume.Type) Capacity {
	c := Capacity{Available: Unlimited, Smallest: parseGiB(t.Specs[volume.SpecMinimum])}
	for _, suffix := range []string{"", "_" + t.Name} {
		if q, ok := l.quotas["gigabytes"+suffix]; ok {
			if free, limited := unused(q); limited {
				c.Available = min(c.Available, volume.Size(min(free, int64(Unlimited>>30)))<<30)
			}
		}
		if q, ok := l.quotas["volumes"+suffix]; ok {
			if free, limited := unused(q); limited && free == 0 {
				c.Available = 0
			}
		}
	}
	for _, largest := range []volume.Size{parseGiB(t.Specs[volume.SpecMaximum]), largestVolume(l.quotas)} {
		if largest > 0 && (c.Largest == 0 || largest < c.Largest) {
			c.Largest = largest
		}
	}
	if c.Largest > 0 {
		c.Largest = min(c.Largest, c.Available) // the Kubernetes scheduler then looks at this value alone
	}
	return c
}

func unused(q volume.Quota) (n int64, limited bool) {
	return max(0, q.Limit-q.InUse-q.Reserved), q.Limit >= 0
}

// largestVolume is the quota for the size of one volume; 0 where there is none.
func largestVolume(quotas map[string]volume.Quota) volume.Size {
	q, ok := quotas["per_volume_gigabytes"]
	if !ok || q.Limit <= 0 || q.Limit > int64(Unlimited>>30) {
		return 0
	}
	return volume.Size(q.Limit) << 30
}

// parseGiB reads an extra spec that holds whole GiB; 0 where it holds no such number.
func parseGiB(text string) volume.Size {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n > int64(Unlimited>>30) {
		return 0
	}
	return volume.Size(n) << 30
}

// quotaCacheAge is how long the driver uses the limits it has read. external-provisioner asks for each class in each zone, one right after
// the other, and repeats that every minute. Its answers are estimates anyway.
const quotaCacheAge = 10 * time.Second

type quotaCache struct {
	lock   chan struct{} // full while a call reads or writes the limits
	limits projectLimits
	// failed is when the last read failed, with failure. The calls that waited for that read share it.
	failed  time.Time
	failure error
	observe func(map[string]volume.Quota) // gets the quotas after each read; may be nil
}

func newQuotaCache(observe func(map[string]volume.Quota)) *quotaCache {
	return &quotaCache{lock: make(chan struct{}, 1), observe: observe}
}

func (c *quotaCache) read(ctx context.Context, cloud volume.Cloud) (projectLimits, error) {
	began := time.Now()
	select {
	case c.lock <- struct{}{}:
		defer func() { <-c.lock }()
	case <-ctx.Done():
		return projectLimits{}, volume.Errorf(volume.KindOf(ctx.Err()), "another request was still reading the quotas of the project: %w", ctx.Err()).Op("read capacity")
	}
	if !c.limits.readAt.IsZero() && time.Since(c.limits.readAt) < quotaCacheAge {
		return c.limits, nil
	}
	if c.failure != nil && !c.failed.Before(began) {
		return projectLimits{}, c.failure
	}
	caller := ctx
	limits := projectLimits{readAt: time.Now()}
	group, ctx := errgroup.WithContext(ctx)
	for _, read := range []func() error{
		func() (err error) { limits.quotas, err = cloud.Quotas(ctx); return err },
		func() (err error) { limits.types, err = cloud.Types(ctx); return err },
		func() (err error) {
			limits.defaultType, err = cloud.DefaultType(ctx)
			return volume.IgnoreNotFound(err)
		},
	} {
		group.Go(func() error { return panics.Try(read) })
	}
	if err := group.Wait(); err != nil {
		if caller.Err() == nil { // otherwise the next call reads by itself
			c.failed, c.failure = time.Now(), err
		}
		return projectLimits{}, err
	}
	c.limits, c.failure = limits, nil
	if c.observe != nil {
		c.observe(limits.quotas)
	}
	return limits, nil
}
