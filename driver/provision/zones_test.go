package provision

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// zonal is a spec whose zones come from the topology.
func zonal(zones ...string) CreateSpec {
	spec := gib
	spec.Zones = zones
	return spec
}

func first(zones []string) string { return slices.Concat(zones, []string{""})[0] }

const noRoom = "schedule allocate volume:Could not find any available weighted backend."

// Labels have no blanks: upstream could not use the zone "zone 1", which has the label "zone-1".
func TestCreateFindsTheZoneByItsLabel(t *testing.T) {
	for name, test := range map[string]struct {
		known     []string // by Cinder
		hidden    []string // Cinder has them, and does not show them
		requested []string
		want      string
		listed    int
	}{
		"a name that is a label":         {known: []string{"az1", "az2"}, requested: []string{"az2"}, want: "az2", listed: 1},
		"upstream's label of a blank":    {known: []string{"az1", "zone 1"}, requested: []string{"zone-1"}, want: "zone 1", listed: 1},
		"the zone of the very name wins": {known: []string{"zone 1", "zone-1"}, requested: []string{"zone-1"}, want: "zone-1", listed: 1},
		"a name no label is left of":     {known: []string{"az1", "東京"}, requested: []string{contract.ZoneLabel("東京")}, want: "東京", listed: 1},
		"a name itself":                  {known: []string{"az1", "zone 1"}, requested: []string{"zone 1"}, want: "zone 1", listed: 1},
		"unknown ones are passed over":   {known: []string{"az1", "az2"}, requested: []string{"nova", "az1"}, want: "az1", listed: 1},
		"a cloud that hides them":        {hidden: []string{"az1", "zone-1"}, requested: []string{"zone-1"}, want: "zone-1", listed: 1},
		"no zone requested, none read":   {known: []string{"az1"}, want: "az1", listed: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t)
				c.Sim.SetVolumeZones(append(test.known, test.hidden...)...)
				if test.hidden != nil {
					c.Fail["VolumeZones"] = volume.Errorf(volume.PermissionDenied, "HTTP 403")
				}
				v, err := service(c).Create(cloudtest.Within(t, 60), zonal(test.requested...))
				if err != nil || v.Zone != test.want || c.Count("VolumeZones") != test.listed {
					t.Errorf("got %q, %v after %v", v.Zone, err, c.Calls)
				}
			})
		})
	}
}

func TestCreateInAnUnknownZoneSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.NewWith(t, zoned("nova", "zone 1"))
		_, err := service(c).Create(t.Context(), zonal("az1", "az2"))
		cloudtest.WantKind(t, err, volume.NotInZone, false)
		for _, part := range []string{"az1 or az2", "nova, zone 1", "[Zone]"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in: %v", part, err)
			}
		}
		if c.Count("CreateVolume") != 0 {
			t.Error(c.Calls)
		}
	})
}

func TestVolumeZonesAreCachedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := service(c)
		ask := func(want int, zones ...string) {
			t.Helper()
			if got, _ := s.volumeZones(cloudtest.Within(t, 60)); !slices.Equal(got, zones) || c.Count("VolumeZones") != want {
				t.Errorf("want %v and %d calls, got %v and %v", zones, want, got, c.Calls)
			}
		}
		c.Fail["VolumeZones"] = volume.Errorf(volume.Unavailable, "no answer")
		ask(1)
		ask(1) // the calls in flight do not wait for one failure after another
		time.Sleep(zonePause)
		c.Fail["VolumeZones"] = volume.Errorf(volume.PermissionDenied, "policy")
		ask(2)
		time.Sleep(zonePause)
		ask(2)
		time.Sleep(zoneCacheAge)
		delete(c.Fail, "VolumeZones")
		c.Sim.SetVolumeZones("az1")
		ask(3, "az1")
		ask(3, "az1")
		time.Sleep(zoneCacheAge)
		c.Fail["VolumeZones"] = volume.Errorf(volume.Unavailable, "no answer")
		ask(4, "az1") // what the driver knows is better than nothing
		ask(4, "az1")
	})
}

func TestVolumeZonesEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		s := service(c)
		c.Hook["VolumeZones"] = func() { time.Sleep(time.Minute) }
		go func() { _, _ = s.volumeZones(t.Context()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, _ = s.volumeZones(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Hour)
	})
}

// The driver tries one zone after another, and each attempt begins only when nothing is left of the one before.
func TestCreateTriesZonesInOrder(t *testing.T) {
	for name, test := range map[string]struct {
		requested []string
		refused   []string // a POST for that zone is answered with 400
		full      []string // a volume there ends in error
		want      string   // empty: NotInZone
		made      int      // POSTs
	}{
		"the first":                      {requested: []string{"az2", "az1"}, want: "az2", made: 1},
		"refused, then the next":         {requested: []string{"az2", "az1"}, refused: []string{"az2"}, want: "az1", made: 2},
		"full, then the next":            {requested: []string{"az2", "az1"}, full: []string{"az2"}, want: "az1", made: 2},
		"both ways, then the third":      {requested: []string{"az2", "az1", "az3"}, refused: []string{"az1"}, full: []string{"az2"}, want: "az3", made: 3},
		"none":                           {requested: []string{"az2", "az1"}, refused: []string{"az1"}, full: []string{"az2"}, made: 2},
		"the only one is full":           {requested: []string{"az2"}, full: []string{"az2"}, made: 1},
		"twice the same is tried once":   {requested: []string{"az2", "az2"}, full: []string{"az2"}, made: 1},
		"no zone requested, and refused": {want: "", refused: []string{""}, made: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.NewWith(t, zoned("az1", "az2", "az3"))
				c.Hook["CreateVolume"] = func() {
					if len(c.Volumes()) != 0 {
						t.Errorf("%d volumes are there when zone %q is tried", len(c.Volumes()), c.Wanted.Zone)
					}
					delete(c.Fail, "CreateVolume")
					if slices.Contains(test.refused, c.Wanted.Zone) {
						c.Fail["CreateVolume"] = volume.Errorf(volume.NotInZone, "Availability zone '%s' is invalid.", c.Wanted.Zone)
					}
					if slices.Contains(test.full, c.Wanted.Zone) {
						c.Sim.SetFault(openstacksim.Fault{Operation: openstacksim.CreateVolume, Full: true, Times: 1})
					}
				}
				v, err := service(c).Create(cloudtest.Within(t, 60), zonal(test.requested...))
				if got := c.Count("CreateVolume"); got != test.made {
					t.Errorf("want %d asked for, got %d", test.made, got)
				}
				if test.want != "" {
					if err != nil || v.Zone != test.want {
						t.Errorf("got %v, %v", v, err)
					}
					return
				}
				kind := volume.NotInZone
				if len(test.requested) == 0 {
					kind = volume.InvalidArgument // the scheduler cannot choose another zone
				}
				cloudtest.WantKind(t, err, kind, false)
				if len(c.Volumes()) != 0 {
					t.Errorf("left over: %v", c.Volumes())
				}
			})
		})
	}
}

func TestCreateTriesTheNextZoneOnlyAfterNotInZone(t *testing.T) {
	for kind := range volume.KindCount {
		if kind == volume.NotInZone {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t)
			c.Fail["CreateVolume"] = volume.Errorf(kind, "no")
			_, err := service(c).Create(cloudtest.Within(t, 60), zonal("az1", "az2"))
			if !volume.Is(err, kind) || c.Count("CreateVolume") != 1 {
				t.Errorf("%s: got %v after %v", kind, err, c.Calls)
			}
		})
	}
}

func TestCreateTriesNoOtherZoneAfterALostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t)
		c.Fail["CreateVolume"] = volume.Errorf(volume.NotInZone, "a proxy's answer").AfterWrite()
		_, err := service(c).Create(cloudtest.Within(t, 60), zonal("az1", "az2"))
		cloudtest.WantKind(t, err, volume.NotInZone, true)
		if c.Count("CreateVolume") != 1 {
			t.Error(c.Calls)
		}
	})
}

// The deadline of an earlier call came before Cinder gave up in the first zone.
func TestCreateSkipsTheZoneInWhichAnEarlierCallFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := cloudtest.OwnVolume(1, "error")
		failed.Zone = "zone 1"
		c := cloudtest.NewWith(t, zoned("az2", "zone 1"), failed)
		c.Reason = noRoom
		v, err := service(c).Create(cloudtest.Within(t, 60), zonal("zone-1", "az2"))
		if err != nil || v.Zone != "az2" || c.Count("CreateVolume") != 1 || len(c.Volumes()) != 1 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
	})
}

// With allow_availability_zone_fallback Cinder creates a volume in the default zone where it does not know the requested zone.
func TestCreateDeletesAVolumeInAZoneThatIsNotAllowed(t *testing.T) {
	fallback := func(c *cloudtest.Cloud) {
		c.Sim.SetVolumeZones("nova")
		c.Sim.SetZoneFallback(true)
		c.Fail["VolumeZones"] = volume.Errorf(volume.PermissionDenied, "HTTP 403") // or the driver would not ask for an unknown zone
	}
	t.Run("made by this call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t)
			fallback(c)
			_, err := service(c).Create(cloudtest.Within(t, 60), zonal("az1"))
			cloudtest.WantKind(t, err, volume.NotInZone, false)
			if !strings.Contains(err.Error(), "in zone nova instead of az1") || len(c.Volumes()) != 0 {
				t.Errorf("got %v; left %v", err, c.Volumes())
			}
		})
	})
	t.Run("found while it is made", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t)
			fallback(c)
			s := service(c)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := s.Create(ctx, zonal("az1"))
			cloudtest.WantKind(t, err, volume.DeadlineExceeded, true)
			_, err = s.Create(cloudtest.Within(t, 60), zonal("az1"))
			cloudtest.WantKind(t, err, volume.NotInZone, false)
			if len(c.Volumes()) != 0 {
				t.Errorf("left %v", c.Volumes())
			}
		})
	})
	t.Run("is retryable where it cannot be deleted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t)
			fallback(c)
			c.Fail["DeleteVolume"] = volume.Errorf(volume.Unavailable, "no answer")
			_, err := service(c).Create(cloudtest.Within(t, 60), zonal("az1", "az2"))
			cloudtest.WantKind(t, err, volume.Unavailable, true)
		})
	})
	t.Run("restored from a backup", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t, cloudtest.SourceVolume).WithBackups(cloudtest.OwnSnapshot(1, volume.Available))
			fallback(c)
			spec := zonal("az1")
			spec.Name, spec.Size, spec.Snapshot = "restored", volume.Range{}, cloudtest.SnapshotID(1)
			_, err := service(c).Create(cloudtest.Within(t, 60), spec)
			cloudtest.WantKind(t, err, volume.NotInZone, false)
			if len(c.Volumes()) != 1 {
				t.Errorf("left %v", c.Volumes())
			}
		})
	})
	// upstream-compatible: cloud.conf's ignore-volume-az.
	t.Run("stays where any zone will do", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t)
			fallback(c)
			delete(c.Fail, "VolumeZones")
			spec := zonal("az1")
			spec.AnyZone = true
			v, err := service(c).Create(cloudtest.Within(t, 60), spec)
			if err != nil || v.Zone != "nova" {
				t.Errorf("got %v, %v", v, err)
			}
		})
	})
	t.Run("stays where the class names the zone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := cloudtest.New(t)
			fallback(c)
			spec := zonal("az1")
			spec.Zone = "az9"
			var log strings.Builder
			s := New(c, c, Options{Owner: cloudtest.TestOwner, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if v, err := s.Create(cloudtest.Within(t, 60), spec); err != nil || v.Zone != "nova" {
				t.Errorf("got %v, %v", v, err)
			}
			if !strings.Contains(log.String(), "availability=az9 zone=nova") {
				t.Errorf("want a warning with both zones, got %q", log.String())
			}
		})
	})
	t.Run("stays where a call may have returned it", func(t *testing.T) {
		v := cloudtest.OwnVolume(1, volume.Available)
		v.Zone = "nova"
		c := cloudtest.New(t, v)
		if _, err := service(c).Create(t.Context(), zonal("az1")); err != nil || c.Count("DeleteVolume") != 0 {
			t.Errorf("got %v after %v", err, c.Calls)
		}
	})
}

// The zone of the class is sent unchanged, whatever the topology and the zones of Cinder are.
func TestCreateUsesOnlyTheZoneOfTheClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.NewWith(t, zoned("az1", "hidden zone"))
		spec := zonal("az1")
		spec.Zone = "hidden zone"
		if v, err := service(c).Create(cloudtest.Within(t, 60), spec); err != nil || v.Zone != "hidden zone" || c.Count("VolumeZones") != 0 {
			t.Errorf("got %v, %v after %v", v, err, c.Calls)
		}
		c.Sim.SetVolumeZones("az1")
		spec.Name = "pvc-2"
		_, err := service(c).Create(cloudtest.Within(t, 60), spec)
		cloudtest.WantKind(t, err, volume.InvalidArgument, false)
	})
}

// anyZone is a cloud that copies a volume into any zone (cloned_volume_same_az = false), which the simulated cloud does not.
type anyZone struct{ *cloudtest.Cloud }

func (c anyZone) CreateVolume(ctx context.Context, o volume.CreateOptions) (volume.Volume, error) {
	empty := o
	empty.SourceID, empty.SnapshotID = "", ""
	v, err := c.Cloud.CreateVolume(ctx, empty)
	copied := func(v *volume.Volume) { v.SourceID, v.SnapshotID = o.SourceID, o.SnapshotID }
	c.Change(v.ID, copied)
	copied(&v)
	return v, err
}

// A copy goes to the zone of its source if that is allowed, and to another zone only if cloned_volume_same_az is off.
func TestZoneOfACloneAndOfARestore(t *testing.T) {
	for name, test := range map[string]struct {
		zones  []string
		zone   string // of the class
		strict bool   // the cloud refuses other zones
		want   string
		kind   volume.Kind
	}{
		"nobody says":                            {strict: true, want: "az 2"},
		"its source's will do, as second":        {zones: []string{"az1", "az-2"}, strict: true, want: "az 2"},
		"its source's will not do":               {zones: []string{"az1"}, strict: true, kind: volume.NotInZone},
		"its source's will not do, need not":     {zones: []string{"az1"}, want: "az1"},
		"the class says another":                 {zone: "az1", zones: []string{"az-2"}, strict: true, kind: volume.InvalidArgument},
		"the class says another, which need not": {zone: "az1", want: "az1"},
	} {
		for _, kind := range []string{"clone", "restore"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					from := sourceVolume()
					c := cloudtest.NewWith(t, zoned("az1", "az 2"), from).WithSnapshots(cloudtest.OwnSnapshot(1, volume.Available))
					s := service(c)
					if !test.strict {
						s.cloud = anyZone{c}
					}
					spec := CreateSpec{Name: "copy", Zones: test.zones, Zone: test.zone, Source: from.ID}
					if kind == "restore" {
						spec.Source, spec.Snapshot = "", cloudtest.SnapshotID(1)
					}
					v, err := s.Create(cloudtest.Within(t, 60), spec)
					if test.want != "" {
						if err != nil || v.Zone != test.want {
							t.Errorf("got %v, %v", v, err)
						}
						return
					}
					cloudtest.WantKind(t, err, test.kind, false)
					if !strings.Contains(err.Error(), "is in zone az 2") || len(c.Volumes()) != 1 {
						t.Errorf("got %v; left %v", err, c.Volumes())
					}
				})
			})
		}
	}
}

func TestCreateResolvesHintsByIDOrName(t *testing.T) {
	v := func(n int, name string) volume.Volume {
		return volume.Volume{ID: cloudtest.VolumeID(n), Name: name, Status: volume.Available, Size: volume.GiB(1)}
	}
	named := string(cloudtest.VolumeID(8)) // a volume whose name looks like an id
	all := []volume.Volume{v(1, "db"), v(2, "web"), v(3, "twice"), v(4, "twice"), v(5, named)}
	for name, test := range map[string]struct {
		hints contract.Hints
		want  contract.Hints
		text  string // of an error
	}{
		"none":           {},
		"by name and id": {hints: contract.Hints{SameHost: []string{"db"}, DifferentHost: []string{string(cloudtest.VolumeID(2))}}, want: contract.Hints{SameHost: []string{string(cloudtest.VolumeID(1))}, DifferentHost: []string{string(cloudtest.VolumeID(2))}}},
		"one volume by both": {
			hints: contract.Hints{SameHost: []string{"db", string(cloudtest.VolumeID(1))}},
			want:  contract.Hints{SameHost: []string{string(cloudtest.VolumeID(1))}},
		},
		"a name like an id": {hints: contract.Hints{SameHost: []string{named}}, want: contract.Hints{SameHost: []string{string(cloudtest.VolumeID(5))}}},
		"the others as they are": {
			hints: contract.Hints{Query: `["=","a","b"]`, LocalToServer: string(cloudtest.ServerA)}, want: contract.Hints{Query: `["=","a","b"]`, LocalToServer: string(cloudtest.ServerA)},
		},
		"not there": {hints: contract.Hints{SameHost: []string{"gone"}}, text: "does not exist"},
		"ambiguous": {hints: contract.Hints{DifferentHost: []string{"twice"}}, text: "2 volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := cloudtest.New(t, all...)
				spec := gib
				spec.Hints = test.hints
				_, err := service(c).Create(cloudtest.Within(t, 60), spec)
				if test.text != "" {
					cloudtest.WantKind(t, err, volume.InvalidArgument, false)
					if !strings.Contains(err.Error(), test.text) || c.Count("CreateVolume") != 0 {
						t.Errorf("got %v after %v", err, c.Calls)
					}
					return
				}
				if diff := cmp.Diff(test.want, c.Wanted.Hints); err != nil || diff != "" {
					t.Error(err, "-want +got\n", diff)
				}
			})
		})
	}
}
