package volume

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/driver/contract"
)

// zonal is a wish for the zones a node's label and others stand for.
func zonal(zones ...string) CreateSpec {
	w := gib
	w.Zones = zones
	return w
}

func first(zones []string) string { return slices.Concat(zones, []string{""})[0] }

const noRoom = "schedule allocate volume:Could not find any available weighted backend."

// Behaviour check 25 of upstream's failures: the zone "zone 1" round-trips.
func TestAZonesLabelFindsTheZone(t *testing.T) {
	for name, test := range map[string]struct {
		known  []string // what Cinder tells
		wish   []string
		want   string
		listed int
	}{
		"a name that is a label":          {known: []string{"az1", "az2"}, wish: []string{"az2"}, want: "az2", listed: 1},
		"upstream's label of a blank":     {known: []string{"az1", "zone 1"}, wish: []string{"zone-1"}, want: "zone 1", listed: 1},
		"the zone of the very name wins":  {known: []string{"zone 1", "zone-1"}, wish: []string{"zone-1"}, want: "zone-1", listed: 1},
		"a name no label is left of":      {known: []string{"az1", "東京"}, wish: []string{contract.ZoneLabel("東京")}, want: "東京", listed: 1},
		"a name itself":                   {known: []string{"az1", "zone 1"}, wish: []string{"zone 1"}, want: "zone 1", listed: 1},
		"unknown ones are passed over":    {known: []string{"az1", "az2"}, wish: []string{"nova", "az1"}, want: "az1", listed: 1},
		"a cloud that does not tell":      {wish: []string{"zone-1"}, want: "zone-1", listed: 1},
		"no zone wished, none is read of": {known: []string{"az1"}, want: "", listed: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.zones = test.known
				v, err := service(c).Create(within(t, 60), zonal(test.wish...))
				if err != nil || v.Zone != test.want || c.count("VolumeZones") != test.listed {
					t.Errorf("got %q, %v after %v", v.Zone, err, c.calls)
				}
			})
		})
	}
}

func TestAZoneThatCinderDoesNotHaveIsForElsewhereBeforeAnythingIsMade(t *testing.T) {
	c := newCloud()
	c.zones = []string{"nova", "zone 1"}
	_, err := service(c).Create(t.Context(), zonal("az1", "az2"))
	wantKind(t, err, NotHere, false)
	for _, part := range []string{"az1 or az2", "nova, zone 1", "[Zone]"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
	if c.count("CreateVolume") != 0 {
		t.Error(c.calls)
	}
}

func TestTheListOfZonesIsReadOnceAMinuteAndWhenItFailedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := service(c)
		ask := func(want int, zones ...string) {
			t.Helper()
			if got := s.known(within(t, 60)); !slices.Equal(got, zones) || c.count("VolumeZones") != want {
				t.Errorf("want %v and %d calls, got %v and %v", zones, want, got, c.calls)
			}
		}
		c.fail["VolumeZones"] = Errorf(Unavailable, "no answer")
		ask(1)
		ask(2)
		c.fail["VolumeZones"] = Errorf(PermissionDenied, "policy")
		ask(3)
		ask(3)
		time.Sleep(zonesAge)
		delete(c.fail, "VolumeZones")
		c.zones = []string{"az1"}
		ask(4, "az1")
		ask(4, "az1")
	})
}

func TestWhoeverWaitsForTheListOfZonesGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		s := service(c)
		c.hook["VolumeZones"] = func() { time.Sleep(time.Minute) }
		go s.known(t.Context())
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		s.known(ctx)
		if took := time.Since(began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		time.Sleep(time.Hour)
	})
}

// One zone after another is tried, and nothing is left of an attempt when the next begins.
func TestZonesAreTriedInOrderOfPreference(t *testing.T) {
	for name, test := range map[string]struct {
		wish    []string
		refused []string // a POST for that zone is answered with 400
		full    []string // a volume there ends in error
		want    string   // empty: NotHere
		made    int      // POSTs
	}{
		"the first":                     {wish: []string{"az2", "az1"}, want: "az2", made: 1},
		"refused, then the next":        {wish: []string{"az2", "az1"}, refused: []string{"az2"}, want: "az1", made: 2},
		"full, then the next":           {wish: []string{"az2", "az1"}, full: []string{"az2"}, want: "az1", made: 2},
		"both ways, then the third":     {wish: []string{"az2", "az1", "az3"}, refused: []string{"az1"}, full: []string{"az2"}, want: "az3", made: 3},
		"none":                          {wish: []string{"az2", "az1"}, refused: []string{"az1"}, full: []string{"az2"}, made: 2},
		"the only one is full":          {wish: []string{"az2"}, full: []string{"az2"}, made: 1},
		"twice the same is tried once":  {wish: []string{"az2", "az2"}, full: []string{"az2"}, made: 1},
		"none is wished, and it is not": {want: "", refused: []string{""}, made: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				c.zones = []string{"az1", "az2", "az3"}
				c.create = func(o CreateOptions, v *Volume) error {
					if len(c.volumes) != 0 {
						t.Errorf("%d volumes are there when zone %q is tried", len(c.volumes), o.Zone)
					}
					if slices.Contains(test.refused, o.Zone) {
						return Errorf(NotHere, "Availability zone '%s' is invalid.", o.Zone)
					}
					c.outcome, c.reason = "", ""
					if slices.Contains(test.full, o.Zone) {
						c.outcome, c.reason = "error", noRoom
					}
					return nil
				}
				v, err := service(c).Create(within(t, 60), zonal(test.wish...))
				if got := c.count("CreateVolume"); got != test.made {
					t.Errorf("want %d asked for, got %d", test.made, got)
				}
				if test.want != "" {
					if err != nil || v.Zone != test.want {
						t.Errorf("got %v, %v", v, err)
					}
					return
				}
				kind := NotHere
				if len(test.wish) == 0 {
					kind = InvalidArgument // the scheduler has no choice to make
				}
				wantKind(t, err, kind, false)
				if len(c.volumes) != 0 {
					t.Errorf("left over: %v", c.volumes)
				}
			})
		})
	}
}

func TestOnlyAZoneThatCannotHaveItMakesTheNextBeTried(t *testing.T) {
	for _, kind := range Kinds() {
		if kind == NotHere {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.fail["CreateVolume"] = Errorf(kind, "no")
			_, err := service(c).Create(within(t, 60), zonal("az1", "az2"))
			if !Is(err, kind) || c.count("CreateVolume") != 1 {
				t.Errorf("%s: got %v after %v", kind, err, c.calls)
			}
		})
	}
}

func TestARefusalAfterAWriteIsNoReasonToTryAnotherZone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.fail["CreateVolume"] = Errorf(NotHere, "a proxy's answer").AfterWrite()
		_, err := service(c).Create(within(t, 60), zonal("az1", "az2"))
		wantKind(t, err, NotHere, true)
		if c.count("CreateVolume") != 1 {
			t.Error(c.calls)
		}
	})
}

// An earlier call's deadline came before Cinder gave up in the first zone.
func TestARetryGoesOnWithTheZonesThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := ofOurs(1, "error")
		failed.Zone = "zone 1"
		c := newCloud(failed)
		c.zones, c.reason = []string{"az2", "zone 1"}, noRoom
		v, err := service(c).Create(within(t, 60), zonal("zone-1", "az2"))
		if err != nil || v.Zone != "az2" || c.count("CreateVolume") != 1 || len(c.volumes) != 1 {
			t.Errorf("got %v, %v after %v", v, err, c.calls)
		}
	})
}

// Cinder's allow_availability_zone_fallback puts a volume into the default zone where it does not know the one asked for.
func TestAVolumeInAZoneThatWillNotDoIsRemoved(t *testing.T) {
	fallback := func(c *fakeCloud) {
		c.create = func(_ CreateOptions, v *Volume) error { v.Zone = "nova"; return nil }
	}
	t.Run("made by this call", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			fallback(c)
			_, err := service(c).Create(within(t, 60), zonal("az1"))
			wantKind(t, err, NotHere, false)
			if !strings.Contains(err.Error(), "in zone nova instead of az1") || len(c.volumes) != 0 {
				t.Errorf("got %v; left %v", err, c.volumes)
			}
		})
	})
	t.Run("found while it is made", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			fallback(c)
			s := service(c)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := s.Create(ctx, zonal("az1"))
			wantKind(t, err, DeadlineExceeded, true)
			_, err = s.Create(within(t, 60), zonal("az1"))
			wantKind(t, err, NotHere, false)
			if len(c.volumes) != 0 {
				t.Errorf("left %v", c.volumes)
			}
		})
	})
	t.Run("that cannot be removed is pursued", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			fallback(c)
			c.fail["DeleteVolume"] = Errorf(Unavailable, "no answer")
			_, err := service(c).Create(within(t, 60), zonal("az1", "az2"))
			wantKind(t, err, Unavailable, true)
		})
	})
	t.Run("restored from a backup", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud(source).withBackups(pictureOfOurs(1, Available))
			fallback(c)
			w := zonal("az1")
			w.Name, w.Size, w.Snapshot = "restored", Range{}, sid(1)
			_, err := service(c).Create(within(t, 60), w)
			wantKind(t, err, NotHere, false)
			if len(c.volumes) != 1 {
				t.Errorf("left %v", c.volumes)
			}
		})
	})
	// upstream-compatible: cloud.conf's ignore-volume-az.
	t.Run("stays where any zone will do", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			c.zones = []string{"nova"}
			fallback(c)
			w := zonal("az1")
			w.AnyZone = true
			v, err := service(c).Create(within(t, 60), w)
			if err != nil || v.Zone != "nova" {
				t.Errorf("got %v, %v", v, err)
			}
		})
	})
	t.Run("stays where the class names the zone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newCloud()
			fallback(c)
			w := zonal("az1")
			w.Zone = "az9"
			if v, err := service(c).Create(within(t, 60), w); err != nil || v.Zone != "nova" {
				t.Errorf("got %v, %v", v, err)
			}
		})
	})
	t.Run("stays when somebody may have been told of it", func(t *testing.T) {
		v := ofOurs(1, Available)
		v.Zone = "nova"
		c := newCloud(v)
		if _, err := service(c).Create(t.Context(), zonal("az1")); err != nil || c.count("DeleteVolume") != 0 {
			t.Errorf("got %v after %v", err, c.calls)
		}
	})
}

// The class's zone is sent as it stands, whatever the topology says and whatever Cinder lists.
func TestTheClasssZoneIsTheOnlyOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.zones = []string{"az1"}
		w := zonal("az1")
		w.Zone = "hidden zone"
		if v, err := service(c).Create(within(t, 60), w); err != nil || v.Zone != "hidden zone" || c.count("VolumeZones") != 0 {
			t.Errorf("got %v, %v after %v", v, err, c.calls)
		}
		c.fail["CreateVolume"] = Errorf(NotHere, "Availability zone 'hidden zone' is invalid.")
		w.Name = "pvc-2"
		_, err := service(c).Create(within(t, 60), w)
		wantKind(t, err, InvalidArgument, false)
	})
}

// A copy goes to its source's zone where that will do; elsewhere only where the cloud's cloned_volume_same_az is off.
func TestTheZoneOfACopy(t *testing.T) {
	for name, test := range map[string]struct {
		zones  []string
		zone   string // of the class
		strict bool   // the cloud refuses other zones
		want   string
		kind   Kind
	}{
		"nobody says":                            {strict: true, want: "az 2"},
		"its source's will do, as second":        {zones: []string{"az1", "az-2"}, strict: true, want: "az 2"},
		"its source's will not do":               {zones: []string{"az1"}, strict: true, kind: NotHere},
		"its source's will not do, need not":     {zones: []string{"az1"}, want: "az1"},
		"the class says another":                 {zone: "az1", zones: []string{"az-2"}, strict: true, kind: InvalidArgument},
		"the class says another, which need not": {zone: "az1", want: "az1"},
	} {
		for _, kind := range []string{"clone", "restore"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					from := source
					from.Zone = "az 2"
					c := newCloud(from).withSnapshots(pictureOfOurs(1, Available))
					c.zones = []string{"az1", "az 2"}
					if test.strict {
						c.sameZoneOnly("az 2")
					}
					w := CreateSpec{Name: "copy", Zones: test.zones, Zone: test.zone, Source: from.ID}
					if kind == "restore" {
						w.Source, w.Snapshot = "", sid(1)
					}
					v, err := service(c).Create(within(t, 60), w)
					if test.want != "" {
						if err != nil || v.Zone != test.want {
							t.Errorf("got %v, %v", v, err)
						}
						return
					}
					wantKind(t, err, test.kind, false)
					if !strings.Contains(err.Error(), "is in zone az 2") || len(c.volumes) != 1 {
						t.Errorf("got %v; left %v", err, c.volumes)
					}
				})
			})
		}
	}
}

func TestHintsNameVolumesByIDOrName(t *testing.T) {
	v := func(n int, name string) Volume { return Volume{ID: id(n), Name: name, Status: Available, Size: GiB(1)} }
	named := string(id(8)) // a volume whose name looks like an id
	all := []Volume{v(1, "db"), v(2, "web"), v(3, "twice"), v(4, "twice"), v(5, named)}
	for name, test := range map[string]struct {
		hints contract.Hints
		want  contract.Hints
		text  string // of an error
	}{
		"none":           {},
		"by name and id": {hints: contract.Hints{SameHost: []string{"db"}, DifferentHost: []string{string(id(2))}}, want: contract.Hints{SameHost: []string{string(id(1))}, DifferentHost: []string{string(id(2))}}},
		"one volume by both": {
			hints: contract.Hints{SameHost: []string{"db", string(id(1))}},
			want:  contract.Hints{SameHost: []string{string(id(1))}},
		},
		"a name like an id": {hints: contract.Hints{SameHost: []string{named}}, want: contract.Hints{SameHost: []string{string(id(5))}}},
		"the others as they are": {
			hints: contract.Hints{Query: `["=","a","b"]`, LocalToServer: string(serverA)}, want: contract.Hints{Query: `["=","a","b"]`, LocalToServer: string(serverA)},
		},
		"not there": {hints: contract.Hints{SameHost: []string{"gone"}}, text: "does not exist"},
		"ambiguous": {hints: contract.Hints{DifferentHost: []string{"twice"}}, text: "2 volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud(all...)
				var got contract.Hints
				c.create = func(o CreateOptions, _ *Volume) error { got = o.Hints; return nil }
				w := gib
				w.Hints = test.hints
				_, err := service(c).Create(within(t, 60), w)
				if test.text != "" {
					wantKind(t, err, InvalidArgument, false)
					if !strings.Contains(err.Error(), test.text) || c.count("CreateVolume") != 0 {
						t.Errorf("got %v after %v", err, c.calls)
					}
					return
				}
				if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
					t.Error(err, "-want +got\n", diff)
				}
			})
		})
	}
}
