package provision

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"golang.org/x/sync/errgroup"
)

// CapacityRequest is what volumes somebody wants to know the room for.
type CapacityRequest struct {
	// Type is the name or id of a volume type; empty means the cloud's default type.
	Type string
	// Zone, Zones and AnyZone are as in a Wish.
	Zone    string
	Zones   []string
	AnyZone bool
	// Shared says that several servers will use such a volume at a time.
	Shared bool
}

// Capacity is the room a project has for volumes.
type Capacity struct {
	// Available is how much can be made in all: Unlimited where no quota bounds it.
	Available volume.Size
	// Smallest and Largest are what a single volume can be; 0 where nothing but Available bounds it.
	Smallest, Largest volume.Size
}

// Unlimited stands for no limit: 1 EiB, more than any cloud has and less than any counter of bytes holds.
const Unlimited = volume.Size(1) << 60

// Capacity says how much room the project's quotas leave for such volumes. What the backends have left nobody but an administrator
// can see. There is none in a zone that Cinder does not have, or for several servers on a type that allows one.
//
// Quotas are those of Cinder: gigabytes and volumes, in all and of the type; a quota of volumes that is used up leaves no room.
func (s *Service) Capacity(ctx context.Context, r CapacityRequest) (Capacity, error) {
	f, err := s.quotas.read(ctx, s.cloud)
	if err != nil {
		return Capacity{}, err
	}
	t := f.defaultType
	if r.Type != "" {
		if t, err = findType(f.types, r.Type); err != nil {
			return Capacity{}, err
		}
	}
	zones, err := s.candidates(ctx, CreateSpec{Zone: r.Zone, Zones: r.Zones, AnyZone: r.AnyZone})
	if known := s.known(ctx); r.Zone != "" && len(known) > 0 && !slices.Contains(known, r.Zone) {
		return Capacity{}, nil
	}
	switch {
	case volume.Is(err, volume.NotHere):
		return Capacity{}, nil
	case err != nil:
		return Capacity{}, err
	case !allowsAnyOf(t, zones), r.Shared && singleServer(t):
		return Capacity{}, nil
	}
	return f.capacity(t), nil
}

// capacity is what the quotas leave for volumes of a type.
func (f capacityFacts) capacity(t volume.Type) Capacity {
	c := Capacity{Available: Unlimited, Smallest: wholeGiB(t.Specs[specMinimum])}
	for _, suffix := range []string{"", "_" + t.Name} {
		if q, ok := f.quotas["gigabytes"+suffix]; ok {
			if free, unlimited := freeOf(q); !unlimited {
				c.Available = min(c.Available, volume.Size(min(free, int64(Unlimited>>30)))<<30)
			}
		}
		if q, ok := f.quotas["volumes"+suffix]; ok {
			if free, unlimited := freeOf(q); !unlimited && free == 0 {
				c.Available = 0
			}
		}
	}
	for _, largest := range []volume.Size{wholeGiB(t.Specs[specMaximum]), perVolume(f.quotas)} {
		if largest > 0 && (c.Largest == 0 || largest < c.Largest) {
			c.Largest = largest
		}
	}
	if c.Largest > 0 {
		c.Largest = min(c.Largest, c.Available) // Kubernetes' scheduler looks at this one alone where it is given
	}
	return c
}

func perVolume(quotas map[string]volume.Quota) volume.Size {
	q, ok := quotas["per_volume_gigabytes"]
	if !ok || q.Limit <= 0 || q.Limit > int64(Unlimited>>30) {
		return 0
	}
	return volume.Size(q.Limit) << 30
}

// wholeGiB reads an extra spec that holds whole GiB; 0 where it holds none.
func wholeGiB(text string) volume.Size {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n <= 0 || n > int64(Unlimited>>30) {
		return 0
	}
	return volume.Size(n) << 30
}

// capacityFacts is what Capacity rests on.
type capacityFacts struct {
	quotas      map[string]volume.Quota
	types       []volume.Type
	defaultType volume.Type // the default type; zero where there is none
	read        time.Time
}

// factsLife is how long facts are good for. external-provisioner asks for every class in every zone, one right after the other,
// and again each minute; its answers are guesses about the future anyway.
const factsLife = 10 * time.Second

// quotaCache reads facts, for one caller at a time.
type quotaCache struct {
	turn  chan struct{} // holds one element while somebody reads
	facts capacityFacts
	saw   func(map[string]volume.Quota)
}

func newQuotaCache(saw func(map[string]volume.Quota)) *quotaCache {
	return &quotaCache{turn: make(chan struct{}, 1), saw: saw}
}

func (r *quotaCache) read(ctx context.Context, cloud volume.Cloud) (capacityFacts, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return capacityFacts{}, volume.Errorf(volume.KindOf(ctx.Err()), "the project's quotas were not read in time: %w", ctx.Err()).Op("read capacity")
	}
	if !r.facts.read.IsZero() && time.Since(r.facts.read) < factsLife {
		return r.facts, nil
	}
	fresh := capacityFacts{read: time.Now()}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { fresh.quotas, err = cloud.Quotas(ctx); return err })
	group.Go(func() (err error) { fresh.types, err = cloud.Types(ctx); return err })
	group.Go(func() (err error) {
		if fresh.defaultType, err = cloud.DefaultType(ctx); volume.Is(err, volume.NotFound) {
			err = nil
		}
		return err
	})
	if err := group.Wait(); err != nil {
		return capacityFacts{}, err
	}
	r.facts = fresh
	if r.saw != nil {
		r.saw(fresh.quotas)
	}
	return fresh, nil
}
