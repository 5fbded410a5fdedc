package idempotent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/idempotent"
)

// object is one of a cloud whose list of new objects and whose search by name are counted.
type object = idempotent.Candidate

type objectCloud struct {
	mu       sync.Mutex
	objects  []object
	hidden   map[string]bool // from the list of new objects
	fails    error
	panics   bool
	more     bool
	takes    time.Duration
	lists    []time.Time // the times of "since"
	searches []string
}

func (c *objectCloud) resource() *idempotent.Resource[object] {
	return &idempotent.Resource[object]{
		Noun: "object", Log: slog.New(slog.DiscardHandler), Candidate: func(o object) object { return o },
		Read: func(_ context.Context, id string) (object, error) { return object{ID: id}, nil },
		List: func(_ context.Context, name string) ([]object, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.searches = append(c.searches, name)
			return slices.DeleteFunc(slices.Clone(c.objects), func(o object) bool { return o.Name != name }), nil
		},
		AwaitDeleted: func(_ context.Context, o object) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.objects = slices.DeleteFunc(c.objects, func(other object) bool { return other.ID == o.ID })
			return nil
		},
		ListCreated: func(ctx context.Context, since time.Time) ([]object, bool, error) {
			select {
			case <-time.After(c.takes):
			case <-ctx.Done():
				return nil, false, ctx.Err()
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lists = append(c.lists, since)
			if c.panics {
				panic("a defect")
			}
			return slices.DeleteFunc(slices.Clone(c.objects), func(o object) bool { return o.CreatedAt.Before(since) || c.hidden[o.ID] }), c.more, c.fails
		},
	}
}

// What the shared list cannot show, a search for the name shows: no duplicate is missed.
func TestARecheckFindsEveryObjectOfItsName(t *testing.T) {
	for name, test := range map[string]struct {
		spoil    func(c *objectCloud, now time.Time)
		want     string
		searches int
	}{
		"alone":                       {want: "own"},
		"a duplicate that is younger": {spoil: func(c *objectCloud, now time.Time) { c.add("z", "name", now) }, want: "own z", searches: 1},
		"an older one of a replica":   {spoil: func(c *objectCloud, now time.Time) { c.add("a", "name", now.Add(-20*time.Second)) }, want: "a own", searches: 1},
		"a clock that is behind":      {spoil: func(c *objectCloud, now time.Time) { c.add("a", "name", now.Add(-70*time.Second)) }, want: "a own", searches: 1},
		"one of another name":         {spoil: func(c *objectCloud, now time.Time) { c.add("x", "other", now) }, want: "own"},
		"the list fails":              {spoil: func(c *objectCloud, _ time.Time) { c.fails = errors.New("HTTP 500") }, want: "own", searches: 1},
		"the list panics":             {spoil: func(c *objectCloud, _ time.Time) { c.panics = true }, want: "own", searches: 1},
		"the list has a further page": {spoil: func(c *objectCloud, _ time.Time) { c.more = true }, want: "own", searches: 1},
		"the list lacks its own":      {spoil: func(c *objectCloud, _ time.Time) { c.hidden = map[string]bool{"own": true} }, want: "own", searches: 1},
		"the list does not end":       {spoil: func(c *objectCloud, _ time.Time) { c.takes = time.Hour }, want: "own", searches: 1},
		"one that is being deleted": {spoil: func(c *objectCloud, now time.Time) {
			c.add("d", "name", now)
			c.objects[len(c.objects)-1].BeingDeleted = true
		}, want: "own", searches: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				searched := time.Now()
				time.Sleep(30 * time.Second)
				c := &objectCloud{}
				own := c.add("own", "name", time.Now())
				if test.spoil != nil {
					test.spoil(c, time.Now())
				}
				found, err := c.resource().Recheck(t.Context(), "name", own, searched)
				ids := ""
				for i, o := range found {
					ids += map[bool]string{true: "", false: " "}[i == 0] + o.ID
				}
				if err != nil || ids != test.want || len(c.searches) != test.searches {
					t.Errorf("want %q and %d searches, got %q, %v and %q", test.want, test.searches, ids, err, c.searches)
				}
			})
		})
	}
}

func (c *objectCloud) add(id, name string, at time.Time) object {
	o := object{ID: id, Name: name, CreatedAt: at}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.objects = append(c.objects, o)
	return o
}

// Fifty rechecks share one list of what was created since the first of its searches. A caller that leaves decides for none.
func TestRechecksAtTheSameTimeShareAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &objectCloud{takes: time.Second / 2}
		r := c.resource()
		begin := time.Now()
		time.Sleep(time.Hour)
		var all sync.WaitGroup
		for i := range 50 {
			own := c.add(fmt.Sprint(i), fmt.Sprint("name-", i), time.Now())
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			leaves := i%10 == 0
			if leaves {
				time.AfterFunc(time.Second/4, cancel)
			}
			all.Go(func() {
				found, err := r.Recheck(ctx, own.Name, own, begin.Add(time.Duration(i)*time.Second))
				if !leaves && (err != nil || len(found) != 1) {
					t.Errorf("%d: %v, %v", i, found, err)
				}
			})
		}
		all.Wait()
		if len(c.lists) != 1 || len(c.searches) > 5 {
			t.Errorf("want one list and few searches, got %d and the searches %q", len(c.lists), c.searches)
		}
		if since, earliest := slices.MinFunc(c.lists, time.Time.Compare), begin.Add(-time.Minute+time.Second); since.After(earliest) {
			t.Errorf("a list since %v, want %v", since, earliest)
		}
	})
}

// A list that is slow costs a caller little, unless the cloud is slow as a whole.
func TestACallerWaitsForAListAsLongAsForSomeSearches(t *testing.T) {
	for search, want := range map[time.Duration]time.Duration{0: 1500 * time.Millisecond, time.Second: 4 * time.Second, time.Minute: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := &objectCloud{takes: time.Hour}
			r := c.resource()
			quick := r.List
			r.List = func(ctx context.Context, name string) ([]object, error) {
				time.Sleep(search)
				return quick(ctx, name)
			}
			own := c.add("own", "name", time.Now())
			if _, err := r.Named(t.Context(), "name"); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			if _, err := r.Recheck(t.Context(), "name", own, begin); err != nil || time.Since(begin) != want+search+5*time.Millisecond { // in which it waits for others
				t.Errorf("a search of %v: want %v for the list, got %v, %v", search, want, time.Since(begin)-search, err)
			}
		})
	}
}
