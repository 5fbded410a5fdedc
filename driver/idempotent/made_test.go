package idempotent_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/inflight"
	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// A 404 for an object that this process has just created ends no delete. A 404 for any other object does, at once.
func TestA404ForADeleteCountsOnceReadsShowTheCreate(t *testing.T) {
	for name, test := range map[string]struct {
		shows, age, leaves time.Duration
		kind               volume.Kind
		took               time.Duration
	}{
		"shows a second later":  {shows: time.Second, took: time.Second},
		"never shows":           {shows: time.Hour, kind: volume.NotFound, took: volume.Lag},
		"is old enough":         {age: volume.Lag, shows: time.Hour, kind: volume.NotFound},
		"is another's":          {age: -1, shows: time.Hour, kind: volume.NotFound},
		"the caller leaves":     {shows: time.Hour, leaves: 1500 * time.Millisecond, kind: volume.DeadlineExceeded, took: 1500 * time.Millisecond},
		"shows at once":         {},
		"is a little too young": {age: volume.Lag - time.Second, shows: time.Hour, kind: volume.NotFound, took: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := (&objectCloud{}).resource()
				r.Requests = &inflight.Calls{}
				if test.age >= 0 {
					if _, err := r.Send(t.Context(), "a", func() {}, func(context.Context) (object, error) { return object{ID: "1", Name: "a"}, nil }); err != nil {
						t.Fatal(err)
					}
					time.Sleep(test.age)
				}
				began := time.Now()
				r.Read = func(_ context.Context, id string) (object, error) {
					if time.Since(began) < test.shows {
						return object{}, volume.Errorf(volume.NotFound, "gone")
					}
					return object{ID: id}, nil
				}
				ctx := t.Context()
				if test.leaves > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.leaves)
					defer cancel()
				}
				_, err := r.ReadForDelete(ctx, "1")
				if took := time.Since(began); took != test.took || volume.KindOf(err) != test.kind {
					t.Errorf("%v after %s", err, took)
				}
			})
		})
	}
}

// What the driver discards, it may have just created: a duplicate, or what failed at once.
func TestA404ForTheDeleteOfADuplicateCountsOnceReadsShowTheCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := (&objectCloud{}).resource()
		r.Requests = &inflight.Calls{}
		created, err := r.Send(t.Context(), "a", func() {}, func(context.Context) (object, error) { return object{ID: "1", Name: "a"}, nil })
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		r.Delete = func(context.Context, object) error {
			if sent++; sent < 3 {
				return volume.Errorf(volume.NotFound, "gone")
			}
			return nil
		}
		if err := r.Discard(t.Context(), created, "another is older"); err != nil || sent != 3 {
			t.Errorf("%v after %d requests", err, sent)
		}
	})
}
