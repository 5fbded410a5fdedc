package attach

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/test/kit/cloudtest"
)

// listedByServerA is a cloud with a volume that is available in Cinder, while Nova lists it for a server. A failed attach or detach leaves such
// an entry in Nova, and it never goes away by itself.
func listedByServerA(t *testing.T) *cloudtest.Cloud {
	t.Helper()
	c := cloudtest.New(t, cloudtest.OwnVolume(1, volume.Available))
	c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
	return c
}

func TestAVolumeThatOnlyNovaShowsAtTheServerEndsTheCallWithTheRemedy(t *testing.T) {
	for verb, run := range map[string]func(t *testing.T, s *Service) error{
		"detach": func(t *testing.T, s *Service) error {
			t.Helper()
			return s.Detach(cloudtest.Within(t, 180), cloudtest.VolumeID(1), cloudtest.ServerA)
		},
		"attach": func(t *testing.T, s *Service) error {
			t.Helper()
			_, err := s.Attach(cloudtest.Within(t, 180), cloudtest.VolumeID(1), cloudtest.ServerA)
			return err
		},
	} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := listedByServerA(t)
				began := time.Now()
				err := run(t, New(c, c, Options{}))
				took := time.Since(began)
				cloudtest.WantKind(t, err, volume.Conflict, false)
				if err == nil || !strings.Contains(err.Error(), "openstack server reboot "+string(cloudtest.ServerA)) {
					t.Errorf("the error names no remedy: %v", err)
				}
				if took < staleConfirmInterval || took > 20*time.Second {
					t.Errorf("it took %v", took)
				}
				if n := len(c.Calls); n > 30 {
					t.Errorf("%d calls: %q", n, c.Calls)
				}
			})
		})
	}
}

// Nova forgets the volume later than Cinder. The wait is short at first, so that a healthy cloud delays nobody.
func TestAVolumeThatNovaForgetsSoonIsDetached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := listedByServerA(t)
		time.AfterFunc(time.Second, func() { c.List(cloudtest.VolumeID(1)) })
		began := time.Now()
		if err := New(c, c, Options{}).Detach(cloudtest.Within(t, 60), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Nova accepts a detach, and Cinder shows its end. Then Nova never removes the volume from its list: its database failed at that moment.
func TestADetachThatNovaNeverForgetsEndsWithTheRemedy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := cloudtest.New(t, cloudtest.AttachedVolume(cloudtest.ServerA))
		time.AfterFunc(1500*time.Millisecond, func() {
			c.Change(cloudtest.VolumeID(1), func(v *volume.Volume) { v.Status, v.Attachments = volume.Available, nil })
			ticker := time.NewTicker(100 * time.Millisecond)
			go func() {
				defer ticker.Stop()
				for {
					select {
					case <-t.Context().Done():
						return
					case <-ticker.C:
						c.List(cloudtest.VolumeID(1), cloudtest.ServerA)
					}
				}
			}()
		})
		err := New(c, c, Options{}).Detach(cloudtest.Within(t, 180), cloudtest.VolumeID(1), cloudtest.ServerA)
		if !volume.Is(err, volume.Conflict) || !strings.Contains(err.Error(), "only an administrator can remove it") {
			t.Errorf("got %v", err)
		}
		if c.Count("Detach") != 1 {
			t.Errorf("Nova was asked %d times", c.Count("Detach"))
		}
	})
}

// The driver knows of an attach that Nova may still complete. Until its end that attach explains the list of Nova, and no administrator is asked.
func TestAListThatAnUnconfirmedAttachExplainsIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := listedByServerA(t)
		s := New(c, c, Options{})
		s.unconfirmedAttaches.add(cloudtest.VolumeID(1), cloudtest.ServerA, time.Now())
		time.AfterFunc(30*time.Second, func() { c.List(cloudtest.VolumeID(1)) })
		began := time.Now()
		if err := s.Detach(cloudtest.Within(t, 180), cloudtest.VolumeID(1), cloudtest.ServerA); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < unconfirmedFor {
			t.Errorf("detached after %v, although Nova may complete the attach", took)
		}
	})
}
