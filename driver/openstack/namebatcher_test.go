package openstack_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/openstack"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// register is a project's volumes, which take a while to read.
type register struct {
	mu       sync.Mutex
	volumes  []volume.Volume
	more     bool          // listings have further pages
	takes    time.Duration // an answer
	hangs    string        // a search for this name never ends by itself
	refuses  error         // listings
	searches int
	listings int
}

func (r *register) VolumesNamed(ctx context.Context, name string) (named []volume.Volume, err error) {
	r.mu.Lock()
	r.searches++
	all := r.volumes
	r.mu.Unlock()
	takes := time.After(r.takes)
	if name == r.hangs {
		takes = nil
	}
	select {
	case <-takes:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for _, v := range all {
		if v.Name == name {
			named = append(named, v)
		}
	}
	return named, nil
}

func (r *register) Select(ctx context.Context, _ volume.Selection) ([]volume.Volume, bool, error) {
	r.mu.Lock()
	r.listings++
	all := r.volumes
	r.mu.Unlock()
	select {
	case <-time.After(r.takes):
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	return all, r.more, r.refuses
}

func (r *register) holds(n int) *register {
	for i := range n {
		r.volumes = append(r.volumes, volume.Volume{ID: volume.ID(fmt.Sprint("id-", i)), Name: fmt.Sprint("pvc-", i)})
	}
	return r
}

// findAll looks for n names and says how many were found right. All but the first ask while the first is being answered.
func findAll(t *testing.T, names *openstack.NameBatcher, n int) (right int) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for i := range n {
		all.Go(func() {
			found, err := names.VolumesNamed(t.Context(), fmt.Sprint("pvc-", i))
			mu.Lock()
			defer mu.Unlock()
			if err == nil && len(found) == 1 && found[0].ID == volume.ID(fmt.Sprint("id-", i)) {
				right++
			}
		})
		if i == 0 {
			synctest.Wait()
		}
	}
	all.Wait()
	return right
}

func TestManyNamesAreFoundInOneListing(t *testing.T) {
	for _, test := range []struct {
		about   string
		project *register
		ask     int
		most    int // calls; the first query is a batch of its own
		again   int // of as many again
	}{
		{"one", (&register{}).holds(3), 1, 1, 1},
		{"a few, of a project of unknown size", (&register{}).holds(5), 5, 5, 5},
		{"many", (&register{}).holds(40), 40, 2, 2},
		{"many, of a project of several pages", (&register{more: true}).holds(40), 40, 41, 40},
	} {
		t.Run(test.about, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				test.project.takes = 30 * time.Millisecond
				names := openstack.NewNameBatcher(test.project)
				for _, most := range []int{test.most, test.again} {
					test.project.searches, test.project.listings = 0, 0
					if right := findAll(t, names, test.ask); right != test.ask {
						t.Errorf("%d of %d found", right, test.ask)
					}
					if calls := test.project.searches + test.project.listings; calls > most {
						t.Errorf("%d searches and %d listings, want %d together at most", test.project.searches, test.project.listings, most)
					}
				}
			})
		})
	}
}

func TestOnceAProjectIsKnownToBeSmallAFewNamesAreEnoughForAListing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		project := (&register{takes: 30 * time.Millisecond}).holds(40)
		names := openstack.NewNameBatcher(project)
		findAll(t, names, 40)
		project.searches, project.listings = 0, 0
		if right := findAll(t, names, 4); right != 4 || project.searches > 1 || project.listings != 1 {
			t.Errorf("%d of 4 found with %d searches and %d listings, want 1 listing and at most 1 search", right, project.searches, project.listings)
		}
	})
}

func TestANameIsLookedForAfterItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		project := (&register{takes: 100 * time.Millisecond}).holds(1)
		names := openstack.NewNameBatcher(project)
		go func() { _, _ = names.VolumesNamed(t.Context(), "pvc-0") }()
		time.Sleep(50 * time.Millisecond) // its call has begun
		project.mu.Lock()
		project.holds(1) // a second one of that name
		project.mu.Unlock()
		found, err := names.VolumesNamed(t.Context(), "pvc-0")
		if err != nil || len(found) != 2 {
			t.Errorf("%v, %v; want both", found, err)
		}
	})
}

func TestASearchThatHangsDelaysOthersByASecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		project := (&register{takes: 30 * time.Millisecond, hangs: "pvc-9"}).holds(1)
		names := openstack.NewNameBatcher(project)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		hung := make(chan error)
		go func() {
			_, err := names.VolumesNamed(ctx, "pvc-9")
			hung <- err
		}()
		synctest.Wait()
		begun := time.Now()
		if right := findAll(t, names, 1); right != 1 || time.Since(begun) > 1100*time.Millisecond {
			t.Errorf("found %d after %v", right, time.Since(begun))
		}
		if err := <-hung; !volume.Is(err, volume.DeadlineExceeded) {
			t.Errorf("the one that hung: %v, want its deadline", err)
		}
	})
}

func TestARefusedListingAnswersAllWhoWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		project := (&register{takes: 30 * time.Millisecond, refuses: volume.Errorf(volume.PermissionDenied, "no")}).holds(40)
		names := openstack.NewNameBatcher(project)
		if right := findAll(t, names, 40); right != 1 {
			t.Errorf("%d found, want the one that was searched for by itself", right)
		}
		if right := findAll(t, names, 1); right != 1 {
			t.Error("the refusal lasts")
		}
	})
}

func TestAListingEndsOnceNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		project := (&register{takes: time.Hour}).holds(40)
		names := openstack.NewNameBatcher(project)
		project.takes = 0
		findAll(t, names, 40)
		project.takes = time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				if _, err := names.VolumesNamed(ctx, fmt.Sprint("pvc-", i)); !errors.Is(err, context.Canceled) {
					t.Errorf("pvc-%d: %v", i, err)
				}
			})
		}
		time.Sleep(5 * time.Second)
		cancel()
		begun := time.Now()
		all.Wait()
		synctest.Wait()
		if took := time.Since(begun); took > time.Second {
			t.Errorf("they left after %v", took)
		}
	})
}
