package provision

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
	"github.com/google/go-cmp/cmp"
)

// limits is a cloud with these quotas, types and zones. The first type is the default one.
type limits struct {
	volume.Cloud
	quotas map[string]volume.Quota
	types  []volume.Type
	zones  []string
}

func (l limits) Quotas(context.Context) (map[string]volume.Quota, error) { return l.quotas, nil }
func (l limits) Types(context.Context) ([]volume.Type, error)            { return l.types, nil }
func (l limits) DefaultType(context.Context) (volume.Type, error)        { return l.types[0], nil }
func (l limits) VolumeZones(context.Context) (zones []string, err error) { return l.zones, nil }

func TestCapacity(t *testing.T) {
	multi := map[string]string{"multiattach": "<is> True"}
	quota := func(limit, used, reserved int64) volume.Quota {
		return volume.Quota{Limit: limit, InUse: used, Reserved: reserved}
	}
	for name, test := range map[string]struct {
		quotas  map[string]volume.Quota
		specs   map[string]string // of the type fast
		request CreateSpec
		want    Capacity
		kind    volume.Kind
	}{
		"no quota at all":              {want: Capacity{Available: Unlimited}},
		"nothing is limited":           {quotas: map[string]volume.Quota{"gigabytes": quota(-1, 5, 0), "volumes": quota(-1, 3, 0), "per_volume_gigabytes": quota(-1, 0, 0)}, want: Capacity{Available: Unlimited}},
		"all gigabytes":                {quotas: map[string]volume.Quota{"gigabytes": quota(100, 20, 5)}, want: Capacity{Available: volume.GiB(75)}},
		"more used than there is":      {quotas: map[string]volume.Quota{"gigabytes": quota(10, 20, 0)}},
		"the default type's gigabytes": {quotas: map[string]volume.Quota{"gigabytes": quota(100, 20, 0), "gigabytes_slow": quota(30, 20, 0), "gigabytes_fast": quota(3, 0, 0)}, want: Capacity{Available: volume.GiB(10)}},
		"the type's gigabytes":         {request: CreateSpec{Type: "fast"}, quotas: map[string]volume.Quota{"gigabytes": quota(-1, 0, 0), "gigabytes_fast": quota(3, 1, 0)}, want: Capacity{Available: volume.GiB(2)}},
		"the type by id":               {request: CreateSpec{Type: fastID}, quotas: map[string]volume.Quota{"gigabytes_fast": quota(3, 1, 0)}, want: Capacity{Available: volume.GiB(2)}},
		"all gigabytes are fewer":      {request: CreateSpec{Type: "fast"}, quotas: map[string]volume.Quota{"gigabytes": quota(1, 0, 0), "gigabytes_fast": quota(3, 1, 0)}, want: Capacity{Available: volume.GiB(1)}},
		"no further volume":            {quotas: map[string]volume.Quota{"gigabytes": quota(100, 0, 0), "volumes": quota(10, 9, 1)}},
		"no further volume of it":      {request: CreateSpec{Type: "fast"}, quotas: map[string]volume.Quota{"volumes_fast": quota(1, 1, 0)}},
		"no further volume of another": {request: CreateSpec{Type: "fast"}, quotas: map[string]volume.Quota{"volumes_slow": quota(1, 1, 0)}, want: Capacity{Available: Unlimited}},
		"a quota for every volume":     {quotas: map[string]volume.Quota{"gigabytes": quota(100, 0, 0), "per_volume_gigabytes": quota(50, 0, 0)}, want: Capacity{Available: volume.GiB(100), Largest: volume.GiB(50)}},
		"a volume as large as is left": {quotas: map[string]volume.Quota{"gigabytes": quota(20, 0, 0), "per_volume_gigabytes": quota(50, 0, 0)}, want: Capacity{Available: volume.GiB(20), Largest: volume.GiB(20)}},
		"the type's sizes": {
			request: CreateSpec{Type: "fast"}, specs: map[string]string{"provisioning:min_vol_size": "4", "provisioning:max_vol_size": "40"},
			quotas: map[string]volume.Quota{"per_volume_gigabytes": quota(50, 0, 0)}, want: Capacity{Available: Unlimited, Smallest: volume.GiB(4), Largest: volume.GiB(40)},
		},
		"sizes that are none":      {request: CreateSpec{Type: "fast"}, specs: map[string]string{"provisioning:min_vol_size": "x", "provisioning:max_vol_size": "-1"}, want: Capacity{Available: Unlimited}},
		"a zone":                   {request: CreateSpec{Zones: []string{"az-1"}}, want: Capacity{Available: Unlimited}}, // the label of "az 1"
		"one zone of two":          {request: CreateSpec{Zones: []string{"moon", "az2"}}, want: Capacity{Available: Unlimited}},
		"an unknown zone":          {request: CreateSpec{Zones: []string{"moon"}}},
		"a class's zone":           {request: CreateSpec{Zone: "az 1", Zones: []string{"az2"}}, want: Capacity{Available: Unlimited}},
		"a class's zone, unknown":  {request: CreateSpec{Zone: "moon"}},
		"any zone":                 {request: CreateSpec{Zones: []string{"moon"}, AnyZone: true}, want: Capacity{Available: Unlimited}},
		"a zone the type is not":   {request: CreateSpec{Type: "fast", Zones: []string{"az2"}}, specs: map[string]string{"RESKEY:availability_zones": "az 1,az3"}},
		"a zone the type is in":    {request: CreateSpec{Type: "fast", Zones: []string{"az2"}}, specs: map[string]string{"RESKEY:availability_zones": "az 1, az2"}, want: Capacity{Available: Unlimited}},
		"several servers":          {request: CreateSpec{Type: "fast", Multiattach: true}, specs: multi, want: Capacity{Available: Unlimited}},
		"one server only":          {request: CreateSpec{Type: "fast", Multiattach: true}, specs: map[string]string{}},
		"hidden extra specs":       {request: CreateSpec{Type: "fast", Multiattach: true}, want: Capacity{Available: Unlimited}},
		"an unknown type":          {request: CreateSpec{Type: "fsat"}, kind: volume.InvalidArgument},
		"a number beyond all size": {quotas: map[string]volume.Quota{"gigabytes": quota(1<<62, 0, 0)}, want: Capacity{Available: Unlimited}},
	} {
		t.Run(name, func(t *testing.T) {
			c := limits{quotas: test.quotas, types: []volume.Type{{Name: "slow"}, {ID: fastID, Name: "fast", Specs: test.specs}}, zones: []string{"az 1", "az2"}}
			got, err := New(c, nil, Options{}).Capacity(t.Context(), test.request)
			if test.kind != volume.Unknown {
				cloudtest.WantKind(t, err, test.kind, false)
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestCapacityAssumesThatAZoneExistsWhereCinderShowsNoZones(t *testing.T) {
	c := limits{types: []volume.Type{{Name: "slow"}}}
	for _, request := range []CreateSpec{{Zone: "az1"}, {Zones: []string{"az1"}}} {
		if got, err := New(c, nil, Options{}).Capacity(t.Context(), request); err != nil || got.Available != Unlimited {
			t.Errorf("%+v: got %v, %v", request, got, err)
		}
	}
}

func TestCapacityOfEveryClassAndZoneReadsTheQuotasOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := service(c)
		c.Hook["Quotas"] = func() { time.Sleep(time.Second) }
		ask := func() {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if _, err := s.Capacity(t.Context(), CreateSpec{}); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
		}
		ask()
		time.Sleep(quotaCacheAge - 2*time.Second)
		ask()
		if n := c.Count("Quotas"); n != 1 {
			t.Errorf("read %d times", n)
		}
		time.Sleep(2 * time.Second)
		ask()
		if n := c.Count("Quotas"); n != 2 {
			t.Errorf("read %d times though the answer was old", n)
		}
	})
}

// Twenty calls must not wait for one failed read after another until their deadline.
func TestCallsThatWaitForAFailedReadShareItsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := service(c)
		c.Fail["Quotas"] = volume.Errorf(volume.Unavailable, "HTTP 504")
		c.Hook["Quotas"] = func() { time.Sleep(30 * time.Second) }
		began := time.Now()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				_, err := s.Capacity(cloudtest.Within(t, 60), CreateSpec{})
				if err == nil || !strings.Contains(err.Error(), "HTTP 504") {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(began); c.Count("Quotas") != 1 || took > 31*time.Second {
			t.Errorf("%d reads in %v", c.Count("Quotas"), took)
		}
	})
}

func TestCapacityReturnsReadErrorsAndDoesNotCacheThem(t *testing.T) {
	for _, method := range []string{"Quotas", "Types", "DefaultType"} {
		c := cloudtest.New(t)
		s := service(c)
		c.Fail[method] = volume.Errorf(volume.PermissionDenied, "no")
		_, err := s.Capacity(t.Context(), CreateSpec{})
		cloudtest.WantKind(t, err, volume.PermissionDenied, false)
		delete(c.Fail, method)
		if got, err := s.Capacity(t.Context(), CreateSpec{}); err != nil || got.Available != volume.GiB(20000) {
			t.Errorf("%s: got %v, %v", method, got, err)
		}
	}
	synctest.Test(t, func(t *testing.T) { // a call that waits for the read of another ends with its own deadline
		c := cloudtest.New(t)
		s := service(c)
		c.Hook["Quotas"] = func() { time.Sleep(time.Minute) }
		go func() { _, _ = s.Capacity(t.Context(), CreateSpec{}) }()
		synctest.Wait()
		_, err := s.Capacity(cloudtest.Within(t, 5), CreateSpec{})
		cloudtest.WantKind(t, err, volume.DeadlineExceeded, false)
		time.Sleep(time.Minute) // or the reading outlives the test
	})
}
