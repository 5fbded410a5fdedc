package status

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
	"github.com/cinder-csi/cinder-csi/internal/panics"
)

// trap panics once, when it is armed for a call.
type trap struct{ armed atomic.Pointer[string] }

func (p *trap) arm(call string) { p.armed.Store(&call) }

func (p *trap) step(call string) {
	if armed := p.armed.Load(); armed != nil && strings.HasPrefix(call, *armed) && p.armed.CompareAndSwap(armed, nil) {
		panic("a defect")
	}
}

// trapMeter is a meter of the loop.
type trapMeter struct{ *trap }

func (m trapMeter) Waiting(waiters int, _ time.Time) {
	if waiters > 0 {
		m.step("loop")
	}
}
func (trapMeter) Called(string) {}

// A panic of the hub ends waits with an error, in which the RPC logs the stack. No wait hangs, and the next ones succeed.
func TestAPanicOfTheHubIsTheErrorOfWaitsThatARetryRepeats(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		call    string
		waiters int
		least   int // waits with the panic
	}{
		"a read":                 {"volume", 1, 1},
		"a listing":              {"list", 50, 2},
		"the loop":               {"loop", 1, 1},
		"the loop, many waiters": {"loop", 50, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud, p := newCloud().becomes(volume.Available, 0), &trap{}
				cloud.project = hundred()
				cloud.fail = func(call string, _ time.Duration) error { p.step(call); return nil }
				h := NewHub(cloud).WithMeter(trapMeter{p})
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() {
					err := h.Run(ctx)
					for ; errors.As(err, new(*panics.Error)); err = h.Run(ctx) {
					}
					ended <- err
				}()
				p.arm(c.call)
				limited, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				panicked := 0
				for _, err := range awaitAll(limited, h, hundred()[:c.waiters], available) {
					switch {
					case err == nil:
					case !errors.As(err, new(*panics.Error)) || !volume.Is(err, volume.Unknown) || !volume.MayHaveWritten(err) || strings.Contains(err.Error(), "\n"):
						t.Errorf("want success or the panic, got %v", err)
					default:
						panicked++
					}
				}
				if panicked < c.least {
					t.Errorf("want the panic for %d waits, got it for %d", c.least, panicked)
				}
				for _, err := range awaitAll(limited, h, hundred(), available) {
					if err != nil {
						t.Errorf("after the panic: %v", err)
					}
				}
				stop()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("Run = %v", err)
				}
			})
		})
	}
}

// One time decides which waiters a listing serves. Time passes while the loop works. An object that becomes too old in between for a listing of
// changes is in this one all the same.
func TestAnObjectThatBecomesOldWhileAListingBeginsIsInIt(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{maxAge - time.Second, maxAge - time.Millisecond, maxAge, maxAge + time.Second} {
		synctest.Test(t, func(t *testing.T) {
			now := time.Now()
			w := &waiter[volume.ID, volume.Volume]{ctx: t.Context(), id: "v", changed: now.Add(-age), due: now}
			var wanted map[volume.ID]bool
			l := loop[volume.ID, volume.Volume]{
				kind: NewHub(newCloud()).kind, meter: noMeter{}, reading: map[volume.ID]bool{}, pageBegan: &atomic.Int64{}, waiters: []*waiter[volume.ID, volume.Volume]{w},
				start: func(_ bool, w map[volume.ID]bool, _ func() answer[volume.ID, volume.Volume]) { wanted = w },
			}
			alone, listed, everything := l.split(l.waiters, now)
			time.Sleep(10 * time.Millisecond)
			if len(alone) == 1 {
				return
			}
			l.startListing(t.Context(), now, everything, now)
			if len(listed) != 1 || !wanted["v"] {
				t.Errorf("age %v: want a listing with the volume, got %v for %v", age, wanted, listed)
			}
			l.cancelListing()
		})
	}
}
