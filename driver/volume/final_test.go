package volume

import (
	"testing"
	"testing/synctest"
	"time"
)

// The sidecar would forget the claim, and the volume that another request for it made would be nobody's.
func TestAFailureIsNotTheLastWordWhileAnotherVolumeHasTheName(t *testing.T) {
	at := func(v Volume, second int) Volume {
		v.CreatedAt = time.Now().Add(time.Duration(second) * time.Second)
		return v
	}
	for name, test := range map[string]struct {
		begin func(c *fakeCloud)
		kind  Kind
	}{
		"the oldest failed, a younger is there": {func(c *fakeCloud) {
			c.put(at(ofOurs(1, ErrorSt), 0))
			c.put(at(ofOurs(7, Available), 2))
		}, Failed},
		"one of the same second failed": {func(c *fakeCloud) {
			c.put(at(ofOurs(1, ErrorSt), 0))
			c.put(at(ofOurs(7, Available), 0))
		}, Failed},
		"its own failed, another replica's is there": {func(c *fakeCloud) {
			c.outcome = ErrorSt
			c.hook["CreateVolume"] = func() { c.put(at(ofOurs(7, Available), -2)) }
		}, Failed},
		"refused, another replica's is there": {func(c *fakeCloud) {
			c.fail["CreateVolume"] = Errorf(Exhausted, "HTTP 413")
			c.hook["CreateVolume"] = func() { c.put(at(ofOurs(7, Creating), 0)) }
		}, Exhausted},
		"no zone can have it, another replica's is there": {func(c *fakeCloud) {
			c.fail["VolumeZones"] = Errorf(PermissionDenied, "HTTP 403")
			c.hook["VolumeZones"] = func() { c.put(at(ofOurs(7, Available), 0)) }
			c.fail["CreateVolume"] = Errorf(NotHere, "HTTP 400")
		}, NotHere},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCloud()
				test.begin(c)
				s, w := service(c), zonal("az1")
				w.Name, w.Size = gib.Name, gib.Size
				_, err := s.Create(within(t, 60), w)
				wantKind(t, err, test.kind, true)
				clear(c.hook)
				c.change(id(7), func(v *Volume) { v.Status = Available })
				v, err := s.Create(within(t, 60), w)
				if err != nil || v.ID != id(7) || len(c.left()) != 1 {
					t.Errorf("the next try: got %s, %v; left %v", v.ID, err, c.left())
				}
			})
		})
	}
}

func TestAFailureIsNotTheLastWordWhereTheNameCannotBeReadAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		c.fail["CreateVolume"] = Errorf(Exhausted, "HTTP 413")
		c.hook["CreateVolume"] = func() { c.fail["VolumesNamed"] = Errorf(Unavailable, "HTTP 503") }
		_, err := service(c).Create(within(t, 60), gib)
		wantKind(t, err, Exhausted, true)
	})
}

func TestACreateThatGoesWellReadsTheNameTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		if _, err := service(c).Create(within(t, 60), gib); err != nil || c.count("VolumesNamed") != 2 {
			t.Errorf("%v after %v", err, c.calls)
		}
	})
}

// As with volumes: whoever forgets the VolumeSnapshot now leaves what is there, or what comes.
