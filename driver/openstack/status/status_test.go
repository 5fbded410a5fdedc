package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

// cloudOf is a cloud whose volumes change with the clock; it counts what it is asked.
type cloudOf struct {
	begin   time.Time
	status  func(id volume.ID, at time.Duration) volume.Status // "" means that there is none
	fail    func(call string, at time.Duration) error
	project []volume.ID   // what a listing shows, newest first
	page    int           // the most volumes one page has
	latency time.Duration // of every answer
	stamps  bool          // volumes tell when they changed
	lag     time.Duration // by which the stamps are behind
	ahead   map[volume.ID]time.Duration
	pages   func(n int) []volume.Volume // the pages of a list that does not end, by their number; nil for the project's

	mu    sync.Mutex
	calls []string
	times []time.Duration // when each call began
}

func newCloud() *cloudOf {
	return &cloudOf{begin: time.Now(), page: 1000, fail: func(string, time.Duration) error { return nil }}
}

// becomes makes every volume creating until at, then s.
func (c *cloudOf) becomes(s volume.Status, at time.Duration) *cloudOf {
	c.status = func(_ volume.ID, now time.Duration) volume.Status {
		if now < at {
			return volume.Creating
		}
		return s
	}
	return c
}

func (c *cloudOf) note(call string) (time.Duration, error) {
	at := time.Since(c.begin)
	c.mu.Lock()
	c.calls, c.times = append(c.calls, call), append(c.times, at)
	c.mu.Unlock()
	err := c.fail(call, at)
	time.Sleep(c.latency) // virtual
	return at, err
}

// count is how often the cloud was asked so far.
func (c *cloudOf) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.calls)
}

// volume is how a volume looks at a time; its stamp is that of its last change, where the cloud stamps.
func (c *cloudOf) volume(id volume.ID, at time.Duration) volume.Volume {
	v := volume.Volume{ID: id, Status: c.status(id, at)}
	if c.stamps {
		v.CreatedAt = c.begin.Add(c.ahead[id])
		v.UpdatedAt = c.begin.Add(c.changes(id, at) + c.ahead[id]).Truncate(time.Second)
	}
	return v
}

// changes is when the volume last came to look as it does at a time, to the tenth of a second.
func (c *cloudOf) changes(id volume.ID, at time.Duration) time.Duration {
	now := c.status(id, at)
	for before := at - 100*time.Millisecond; before > 0; before -= 100 * time.Millisecond {
		if c.status(id, before) != now {
			return before + 100*time.Millisecond - c.lag
		}
	}
	return -c.lag
}

func (c *cloudOf) Volume(_ context.Context, id volume.ID) (volume.Volume, error) {
	at, err := c.note("volume " + string(id))
	if err != nil {
		return volume.Volume{}, err
	}
	if v := c.volume(id, at); v.Status != "" {
		return v, nil
	}
	return volume.Volume{}, volume.Errorf(volume.NotFound, "volume %s does not exist", id)
}

func (c *cloudOf) Select(_ context.Context, p volume.Selection) ([]volume.Volume, bool, error) {
	call := "list"
	if !p.Since.IsZero() {
		call = "changes"
	}
	at, err := c.note(call)
	if err != nil {
		return nil, false, err
	}
	if c.pages != nil {
		return c.pages(c.count()), true, nil
	}
	rest := c.project
	if p.Marker != "" {
		rest = rest[slices.Index(rest, p.Marker)+1:]
	}
	var page []volume.Volume
	for _, id := range rest[:min(len(rest), c.page)] {
		v := c.volume(id, at)
		if v.Status != "" && !v.UpdatedAt.Before(p.Since.Truncate(time.Second)) {
			page = append(page, v)
		}
	}
	return page, len(rest) > len(page), nil
}

func available(v volume.Volume, ok bool) (bool, error) {
	return ok && v.Status == volume.Available, nil
}
func gone(_ volume.Volume, ok bool) (bool, error) { return !ok, nil }

// inBubble runs a hub over c in virtual time.
func inBubble(t *testing.T, prepare func(*cloudOf), story func(t *testing.T, h *Hub, c *cloudOf)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud()
		prepare(c)
		h := NewHub(c)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- h.Run(ctx) }()
		story(t, h, c)
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
	})
}

func TestAWaiterIsToldSoonAfterItHappens(t *testing.T) {
	t.Parallel()
	for _, happens := range []time.Duration{0, 300 * time.Millisecond, 3 * time.Second, time.Minute} {
		inBubble(t, func(c *cloudOf) { c.becomes(volume.Available, happens) }, func(t *testing.T, h *Hub, c *cloudOf) {
			v, err := h.Await(t.Context(), "v", available)
			if err != nil || v.Status != volume.Available {
				t.Errorf("Await = %v, %v", v, err)
			}
			late := time.Since(c.begin) - happens
			if allowed := max(minInterval, happens/10); late > allowed {
				t.Errorf("told %v after it happened at %v, allowed %v", late, happens, allowed)
			}
			if n := c.count(); n > 70 {
				t.Errorf("%d calls for %v", n, happens)
			}
		})
	}
}

func TestNothingIsAskedWhileNobodyWaits(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *cloudOf) { c.becomes(volume.Available, time.Hour) }, func(t *testing.T, h *Hub, c *cloudOf) {
		time.Sleep(time.Hour)
		if c.count() != 0 {
			t.Errorf("%d calls before anybody waited", c.count())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		c.becomes(volume.Available, 100*time.Hour)
		if _, err := h.Await(ctx, "v", available); !volume.Is(err, volume.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		asked := c.count()
		time.Sleep(time.Hour)
		if c.count() != asked || asked == 0 {
			t.Errorf("%d calls while waiting, %d an hour later", asked, c.count())
		}
	})
}

func TestAnAnswerIsReadAfterTheWaiterBegan(t *testing.T) {
	t.Parallel()
	// A poll for the first waiter has seen "available" and is in flight. Then the volume changes to error, and the second waiter
	// begins. The second must not get "available".
	prepare := func(c *cloudOf) {
		c.latency = time.Second
		c.status = func(_ volume.ID, at time.Duration) volume.Status {
			if at < 500*time.Millisecond {
				return volume.Available
			}
			return volume.ErrorStatus
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, _ *cloudOf) {
		any := func(volume.Volume, bool) (bool, error) { return true, nil }
		first := make(chan volume.Status)
		go func() { v, _ := h.Await(t.Context(), "v", any); first <- v.Status }()
		time.Sleep(600 * time.Millisecond)
		v, err := h.Await(t.Context(), "v", any)
		if err != nil || v.Status != volume.ErrorStatus {
			t.Errorf("second waiter told %q, %v; want what it is now", v.Status, err)
		}
		if s := <-first; s != volume.Available {
			t.Errorf("first waiter told %q", s)
		}
	})
}

func TestAVolumeThatIsGoneIsAnAnswer(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *cloudOf) { c.becomes("", 2*time.Second) }, func(t *testing.T, h *Hub, _ *cloudOf) {
		if _, err := h.Await(t.Context(), "v", gone); err != nil {
			t.Error(err)
		}
	})
}

func TestTheWaitersOwnErrorEndsItsWaitAlone(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *cloudOf) { c.becomes(volume.Available, 3*time.Second) }, func(t *testing.T, h *Hub, _ *cloudOf) {
		other := make(chan error)
		go func() { _, err := h.Await(t.Context(), "v", available); other <- err }()
		refused := volume.Errorf(volume.Failed, "no")
		_, err := h.Await(t.Context(), "v", func(volume.Volume, bool) (bool, error) { return false, refused })
		if !errors.Is(err, refused) {
			t.Errorf("error %v, want the waiter's own", err)
		}
		if err := <-other; err != nil {
			t.Errorf("the other waiter: %v", err)
		}
	})
}

func TestContextsEndWaitsWithTheirKindAndWhatWasSeen(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *cloudOf) { c.becomes(volume.Available, time.Hour) }, func(t *testing.T, h *Hub, c *cloudOf) {
		soon, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := h.Await(soon, "v", available)
		if !volume.Is(err, volume.DeadlineExceeded) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if want := "wait: volume v: its status is creating; a retry resumes the wait: context deadline exceeded"; err.Error() != want {
			t.Errorf("error %q, want %q", err, want)
		}
		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		if _, err := h.Await(leaving, "v", available); !volume.Is(err, volume.Canceled) {
			t.Errorf("error %v", err)
		}
		asked := c.count()
		if _, err := h.Await(leaving, "v", available); !volume.Is(err, volume.Canceled) {
			t.Errorf("error %v", err)
		}
		if c.count() > asked+1 {
			t.Errorf("asked %d times for a waiter that had left before", c.count()-asked)
		}
	})
}

func TestAnOutageIsWaitedOutAndARefusalIsNot(t *testing.T) {
	t.Parallel()
	down := volume.Errorf(volume.Unavailable, "HTTP 503")
	outage := func(c *cloudOf) {
		c.becomes(volume.Available, time.Second)
		c.fail = func(_ string, at time.Duration) error {
			if at < 30*time.Second {
				return down
			}
			return nil
		}
	}
	inBubble(t, outage, func(t *testing.T, h *Hub, _ *cloudOf) {
		soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := h.Await(soon, "v", available); !volume.Is(err, volume.DeadlineExceeded) || err.Error() != "wait: volume v: the last read failed: HTTP 503; a retry resumes the wait: context deadline exceeded" {
			t.Errorf("error %v", err)
		}
		if _, err := h.Await(t.Context(), "v", available); err != nil {
			t.Errorf("error %v, want the outage waited out", err)
		}
	})
	for _, kind := range []volume.Kind{volume.Unauthenticated, volume.PermissionDenied, volume.Unknown, volume.Unimplemented} {
		refusal := volume.Errorf(kind, "no")
		inBubble(t, func(c *cloudOf) { c.fail = func(string, time.Duration) error { return refusal } }, func(t *testing.T, h *Hub, c *cloudOf) {
			if _, err := h.Await(t.Context(), "v", available); !errors.Is(err, refusal) || c.count() != 1 {
				t.Errorf("%v after %d calls, want the refusal after one", err, c.count())
			}
		})
	}
}

// hundred makes ids in the order a listing shows them.
func hundred() []volume.ID {
	all := make([]volume.ID, 100)
	for i := range all {
		all[i] = volume.ID(fmt.Sprintf("v%03d", i))
	}
	return all
}

// awaitAll waits for all at once and gives the errors.
func awaitAll(ctx context.Context, h *Hub, all []volume.ID, done func(volume.Volume, bool) (bool, error)) []error {
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, id := range all {
		wait.Go(func() { _, errs[i] = h.Await(ctx, id, done) })
	}
	wait.Wait()
	return errs
}

func TestManyWaitersShareOneListing(t *testing.T) {
	t.Parallel()
	const takes = 20 * time.Second
	prepare := func(c *cloudOf) {
		c.project = hundred()
		c.latency = 50 * time.Millisecond
		c.becomes(volume.Available, takes)
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, c.project, available)...); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(c.begin) - takes; late > takes/10 {
			t.Errorf("told %v after it happened", late)
		}
		if n := c.count(); n > 50 {
			t.Errorf("%d calls in %v for 100 waiters", n, takes)
		}
		last := -time.Hour
		for i, call := range c.calls {
			if call == "list" {
				if c.times[i]-last < listInterval*c.latency {
					t.Errorf("listings at %v and %v", last, c.times[i])
				}
				last = c.times[i]
			}
		}
	})
}

func TestAbsenceFromAListingIsAskedAgain(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project = hundred()[:50] // the walk passes the other half over, though it is there
		c.latency = 50 * time.Millisecond
		c.becomes(volume.Available, 0)
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, _ *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, hundred(), func(_ volume.Volume, ok bool) (bool, error) {
			if !ok {
				return false, errors.New("said to be gone")
			}
			return true, nil
		})...); err != nil {
			t.Error(err)
		}
	})
	inBubble(t, func(c *cloudOf) { c.latency = 50 * time.Millisecond; c.becomes("", 0) }, func(t *testing.T, h *Hub, c *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, hundred(), gone)...); err != nil {
			t.Error(err)
		}
		if !slices.Contains(c.calls, "list") {
			t.Error("nothing was listed; the test shows nothing")
		}
	})
}

func TestAListingIsWalkedByPagesAndOutlivesALostMarker(t *testing.T) {
	t.Parallel()
	pages := 0
	prepare := func(c *cloudOf) {
		c.project, c.page, c.latency = hundred(), 30, 50*time.Millisecond
		c.becomes(volume.Available, 3*time.Second)
		c.fail = func(call string, _ time.Duration) error {
			if call == "list" {
				if pages++; pages == 3 {
					return volume.Errorf(volume.NotFound, "the marker is gone")
				}
			}
			return nil
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, _ *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, hundred(), available)...); err != nil {
			t.Error(err)
		}
	})
	if pages < 3 {
		t.Errorf("%d pages", pages)
	}
}

// Single reads work, and every listing fails at once or after a while. The waits end as soon as reads show the change.
func TestAListingThatFailsSendsItsWaitersToReads(t *testing.T) {
	t.Parallel()
	const changes = 2 * time.Second
	for _, failure := range []volume.Kind{volume.Unavailable, volume.PermissionDenied, volume.Unimplemented, volume.InvalidArgument, volume.NotFound, volume.Exhausted} {
		for _, takes := range []time.Duration{0, 3 * time.Second} {
			for _, waiters := range []int{2, 5, 20, 100} {
				prepare := func(c *cloudOf) {
					c.project, c.stamps, c.latency = hundred(), true, 30*time.Millisecond
					c.becomes(volume.Available, changes)
					c.fail = func(call string, _ time.Duration) error {
						if strings.HasPrefix(call, "volume") {
							return nil
						}
						time.Sleep(takes)
						return volume.Errorf(failure, "no")
					}
				}
				inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
					if err := errors.Join(awaitAll(t.Context(), h, c.project[:waiters], available)...); err != nil {
						t.Error(err)
					}
					late, lists := time.Since(c.begin)-max(changes, takes), c.count()-c.kindOf("volume")
					if late > time.Second || lists != 1 {
						t.Errorf("%d waiters, %v after %v: they ended %v late, after %d listings", waiters, failure, takes, late, lists)
					}
				})
			}
		}
	}
}

// While every object costs a read of its own, the hub reads half as often.
func TestReadsInsteadOfAListingComeHalfAsOften(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project = hundred()
		c.becomes(volume.Available, 30*time.Second)
		c.fail = func(call string, _ time.Duration) error {
			if strings.HasPrefix(call, "volume") {
				return nil
			}
			return volume.Errorf(volume.Unavailable, "no")
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, c.project[:2], available)...); err != nil {
			t.Error(err)
		}
		if reads := c.kindOf("volume") / 2; reads < 21 || reads > 29 {
			t.Errorf("%d reads of each volume in thirty seconds, want about 25", reads)
		}
	})
}

// A cloud whose listings fail gets no more reads at a time than it can bear.
func TestReadsAtATimeAreBounded(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project, c.latency = hundred(), time.Second
		c.becomes(volume.Available, 10*time.Second)
		c.fail = func(call string, _ time.Duration) error {
			if strings.HasPrefix(call, "volume") {
				return nil
			}
			return volume.Errorf(volume.Unavailable, "no")
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, c.project, available)...); err != nil {
			t.Error(err)
		}
		most := 0
		for _, now := range c.times {
			n := 0
			for i, began := range c.times {
				if strings.HasPrefix(c.calls[i], "volume") && began <= now && now < began+c.latency {
					n++
				}
			}
			most = max(most, n)
		}
		if most != 64 {
			t.Errorf("%d reads at a time", most)
		}
	})
}

// A listing that takes long and does not fail (a large project, a database without an index) costs its waiters two seconds, and no more. Where
// single reads are slow too, the cloud is, and gets no more requests than before.
func TestAListingThatIsSlowSendsItsWaitersToReads(t *testing.T) {
	t.Parallel()
	for _, read := range []time.Duration{30 * time.Millisecond, 2 * time.Second} {
		for _, listing := range []time.Duration{time.Second, 5 * time.Second, 28 * time.Second} {
			for _, waiters := range []int{2, 20, 60} {
				prepare := func(c *cloudOf) {
					c.project, c.latency = hundred(), read
					c.becomes(volume.Available, time.Minute)
					c.fail = func(call string, _ time.Duration) error {
						if !strings.HasPrefix(call, "volume") {
							time.Sleep(listing)
						}
						return nil
					}
				}
				inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
					if err := errors.Join(awaitAll(t.Context(), h, c.project[:waiters], available)...); err != nil {
						t.Error(err)
					}
					if late := time.Since(c.begin) - time.Minute; late > maxInterval+min(2*(listing+read), listPatience+2*time.Duration(replacedReads(waiters))*read) {
						t.Errorf("%d waiters, reads of %v, listings of %v: they ended %v late", waiters, read, listing, late)
					}
					if reads := c.kindOf("volume"); waiters > 2 && listing+read < max(listPatience, time.Duration(replacedReads(waiters))*read) && reads > 2*waiters {
						t.Errorf("%d waiters, reads of %v, listings of %v: %d reads", waiters, read, listing, reads)
					}
				})
			}
		}
	}
}

func TestAListingIsTriedAgainAfterAMinuteBesideTheReads(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project, c.latency = hundred()[:20], 30*time.Millisecond
		c.status = func(id volume.ID, at time.Duration) volume.Status {
			if at < 65*time.Second || id != "v000" && at < 150*time.Second {
				return volume.Creating
			}
			return volume.Available
		}
		c.fail = func(call string, at time.Duration) error {
			if call != "list" || at > 2*time.Minute {
				return nil
			}
			time.Sleep(20 * time.Second)
			return volume.Errorf(volume.Unavailable, "HTTP 504")
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		waited := map[volume.ID]time.Duration{}
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, id := range c.project {
			all.Go(func() {
				if _, err := h.Await(t.Context(), id, available); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				waited[id] = time.Since(c.begin)
			})
		}
		all.Wait()
		// The second listing begins after 80 s, and fails after 100. The third begins after 160.
		if waited["v000"] > 71*time.Second || waited["v001"] > 156*time.Second {
			t.Errorf("waited %v and %v for changes after 65 s and 150 s", waited["v000"], waited["v001"])
		}
		if lists := c.kindOf("list"); lists != 2 {
			t.Errorf("%d listings", lists)
		}
		begun := c.count()
		if err := errors.Join(awaitAll(t.Context(), h, c.project, available)...); err != nil || c.count() == begun {
			t.Error(err)
		}
	})
}

func TestStoppingLetsEveryWaiterGo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCloud().becomes(volume.Available, time.Hour)
		h := NewHub(c)
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		go func() { _ = h.Run(ctx) }()
		for _, err := range awaitAll(t.Context(), h, hundred()[:3], available) {
			if !volume.Is(err, volume.Unavailable) {
				t.Errorf("error %v", err)
			}
		}
		if _, err := h.Await(t.Context(), "v", available); !volume.Is(err, volume.Unavailable) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// kindOf counts the calls of one kind.
func (c *cloudOf) kindOf(call string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, made := range c.calls {
		if strings.HasPrefix(made, call) {
			n++
		}
	}
	return n
}

// staggered changes the status of the nth volume n tenths of a second after two seconds.
func staggered(from, to volume.Status) func(volume.ID, time.Duration) volume.Status {
	return func(id volume.ID, at time.Duration) volume.Status {
		var n int
		_, _ = fmt.Sscanf(string(id), "v%d", &n)
		if at < 2*time.Second+time.Duration(n)*100*time.Millisecond {
			return from
		}
		return to
	}
}

func TestOnlyWhatChangedIsListedOnceTimesAreKnown(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project, c.stamps, c.latency, c.status = hundred(), true, 30*time.Millisecond, staggered(volume.Creating, volume.Available)
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, c.project, available)...); err != nil {
			t.Fatal(err)
		}
		if all, changes := c.kindOf("list"), c.kindOf("changes"); all > 3 || changes < 10 || c.count() > 130 {
			t.Errorf("%d listings of everything, %d of what changed, %d calls", all, changes, c.count())
		}
		if took := time.Since(c.begin); took > 13500*time.Millisecond {
			t.Errorf("took %v, the last volume 12 s", took)
		}
	})
}

func TestAChangeStampedByAClockThatIsBehindIsFoundAllTheSame(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project, c.stamps, c.lag, c.status = hundred(), true, time.Hour, staggered(volume.Creating, volume.Available)
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, c.project, available)...); err != nil {
			t.Fatal(err)
		}
		if late := time.Since(c.begin) - 12*time.Second; late > 2*time.Second {
			t.Errorf("told %v late", late)
		}
	})
}

// tenInTurn creates ten volumes, one each second. The clock of the host of the first is wrong. It returns how late the last waiter for
// the nine others got its result, and the number of calls.
func tenInTurn(t *testing.T, ahead time.Duration) (late time.Duration, calls int) {
	prepare := func(c *cloudOf) {
		c.project, c.stamps, c.latency = hundred()[:10], true, 30*time.Millisecond
		c.ahead = map[volume.ID]time.Duration{c.project[0]: ahead}
		c.status = func(id volume.ID, at time.Duration) volume.Status {
			if at < happensAt(id) {
				return volume.Creating
			}
			return volume.Available
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		var wait sync.WaitGroup
		var mu sync.Mutex
		for _, id := range c.project {
			wait.Go(func() {
				if _, err := h.Await(t.Context(), id, available); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				if id != c.project[0] {
					late = max(late, time.Since(c.begin)-happensAt(id))
				}
			})
		}
		wait.Wait()
		calls = c.count()
	})
	return late, calls
}

// happensAt is when the nth volume of tenInTurn becomes available.
func happensAt(id volume.ID) time.Duration {
	var n int
	_, _ = fmt.Sscanf(string(id), "v%d", &n)
	return time.Duration(2+n) * time.Second
}

func TestOneWrongClockDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	_, wantCalls := tenInTurn(t, 0)
	wantLate := interval(happensAt("v9")) + 100*time.Millisecond // the poll interval at the end, and the answers
	for ahead, more := range map[time.Duration]int{
		10 * time.Minute: 5, 3 * time.Second: 5,
		-10 * time.Minute: 20, -3 * time.Second: 20, // its own waiter asks for ten seconds longer
	} {
		late, calls := tenInTurn(t, ahead)
		if late > wantLate || calls > wantCalls+more {
			t.Errorf("clock ahead by %v: told up to %v late by %d calls; want %v, and %d with right clocks", ahead, late, calls, wantLate, wantCalls)
		}
	}
}

func TestDeletionsAreListedAndEachIsConfirmedOnce(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project, c.stamps, c.latency, c.status = hundred(), true, 30*time.Millisecond, staggered(volume.Deleting, "")
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		if err := errors.Join(awaitAll(t.Context(), h, c.project, gone)...); err != nil {
			t.Fatal(err)
		}
		if single := c.kindOf("volume"); single < 100 || single > 120 || c.kindOf("changes") == 0 {
			t.Errorf("%d single reads and %d listings of what changed, for 100 deletions", single, c.kindOf("changes"))
		}
	})
}

func TestAReadIsFreshAndSharedAndTellsWhateverItSees(t *testing.T) {
	t.Parallel()
	down := volume.Errorf(volume.Unavailable, "HTTP 503")
	prepare := func(c *cloudOf) {
		c.latency = 100 * time.Millisecond
		c.becomes(volume.Available, time.Hour)
		c.fail = func(call string, _ time.Duration) error {
			switch call {
			case "volume down":
				return down
			}
			return nil
		}
		creating := c.status
		c.status = func(id volume.ID, at time.Duration) volume.Status {
			if id == "none" {
				return ""
			}
			return creating(id, at)
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		if v, err := h.Read(t.Context(), "v"); err != nil || v.Status != volume.Creating || c.count() != 1 {
			t.Errorf("%v, %v after %d calls", v, err, c.count())
		}
		if _, err := h.Read(t.Context(), "none"); !volume.Is(err, volume.NotFound) {
			t.Errorf("error %v", err)
		}
		if _, err := h.Read(t.Context(), "down"); !errors.Is(err, down) {
			t.Errorf("error %v", err)
		}
		before := c.count()
		var group sync.WaitGroup
		for n := range 20 {
			group.Go(func() {
				time.Sleep(time.Duration(n) * time.Millisecond)
				if v, err := h.Read(t.Context(), "v"); err != nil || v.Status != volume.Creating {
					t.Errorf("%v, %v", v, err)
				}
			})
		}
		group.Wait()
		if n := c.count() - before; n != 2 { // the first, and one for all who came while it was under way
			t.Errorf("%d calls for twenty readers", n)
		}
	})
}

func TestNobodysSlowReadDelaysAnother(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.becomes(volume.Available, 0)
		c.fail = func(call string, _ time.Duration) error {
			if call == "volume slow" {
				time.Sleep(20 * time.Second)
			}
			return nil
		}
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		slow := make(chan error)
		go func() { _, err := h.Read(t.Context(), "slow"); slow <- err }()
		time.Sleep(time.Second)
		begin := time.Now()
		if _, err := h.Await(t.Context(), "v", available); err != nil || time.Since(begin) > minInterval {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		if err := <-slow; err != nil {
			t.Error(err)
		}
	})
}

// Behaviour check 11 of upstream's failures: an expired context stops polling within 100 ms.
func TestAnExpiredContextStopsPollingAtOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *cloudOf) { c.becomes(volume.Available, time.Hour) }, func(t *testing.T, h *Hub, c *cloudOf) {
		ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		awaitAll(ctx, h, hundred()[:3], available)
		if late := time.Since(c.begin) - 7*time.Second; late > 0 {
			t.Errorf("the waiters left %v late", late)
		}
		asked := c.count()
		time.Sleep(time.Minute)
		if c.count() != asked {
			t.Errorf("%d calls after the contexts had ended", c.count()-asked)
		}
	})
}

type attachedTo struct {
	reads atomic.Int32
	begin time.Time
}

func (a *attachedTo) ServerAttachments(_ context.Context, id volume.ServerID) ([]volume.Attachment, error) {
	a.reads.Add(1)
	time.Sleep(30 * time.Millisecond)
	if id == "gone" {
		return nil, volume.Errorf(volume.NotFound, "no server")
	}
	return []volume.Attachment{{Volume: "v", Server: id}}, nil
}

func TestTheListOfAServerIsSharedByItsReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cloud := &attachedTo{begin: time.Now()}
		h := NewServerHub(cloud)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = h.Run(ctx) }()
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				if list, err := h.Read(ctx, "s"); err != nil || len(list) != 1 {
					t.Errorf("%v, %v", list, err)
				}
			})
		}
		group.Wait()
		if n := cloud.reads.Load(); n > 2 {
			t.Errorf("%d reads of one server's list for twenty readers", n)
		}
		if _, err := h.Read(ctx, "gone"); !volume.Is(err, volume.NotFound) {
			t.Errorf("error %v", err)
		}
	})
}

// metered is a Meter that records.
type metered struct {
	mu      sync.Mutex
	calls   map[string]int
	waiters int
	oldest  time.Time
	most    int
}

func (m *metered) Waiting(waiters int, oldest time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waiters, m.oldest, m.most = waiters, oldest, max(m.most, waiters)
}

func (m *metered) Called(how string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[how]++
}

func TestTheHubTellsItsMeterEveryCallAndWhoWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, m := newCloud(), &metered{calls: map[string]int{}}
		c.project, c.stamps, c.status = hundred(), true, staggered(volume.Creating, volume.Available)
		h := NewHub(c).WithMeter(m)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go func() { _ = h.Run(ctx) }()
		begun := time.Now()
		go func() {
			time.Sleep(5 * time.Second)
			m.mu.Lock()
			defer m.mu.Unlock()
			if !m.oldest.Equal(begun) {
				t.Errorf("the oldest waits since %v, want %v", m.oldest, begun)
			}
		}()
		awaitAll(ctx, h, c.project, available)
		synctest.Wait()
		if m.waiters != 0 || !m.oldest.IsZero() || m.most != 100 {
			t.Errorf("%d wait since %v, %d at most", m.waiters, m.oldest, m.most)
		}
		if m.calls["changes"] != c.kindOf("changes") || m.calls["single"] != c.kindOf("volume") || m.calls["list"] != c.kindOf("list") {
			t.Errorf("told %v of %d calls", m.calls, c.count())
		}
	})
}

func TestManyReadsAtOnceAreOneListingOfEverything(t *testing.T) {
	t.Parallel()
	prepare := func(c *cloudOf) {
		c.project, c.stamps, c.latency = hundred(), true, 200*time.Millisecond
		c.becomes(volume.Available, time.Hour)
	}
	inBubble(t, prepare, func(t *testing.T, h *Hub, c *cloudOf) {
		if _, err := h.Read(t.Context(), c.project[0]); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		var all sync.WaitGroup
		for _, id := range c.project {
			all.Go(func() {
				if v, err := h.Read(t.Context(), id); err != nil || v.ID != id {
					t.Errorf("%s: %v, %v", id, v, err)
				}
			})
		}
		all.Wait()
		if single, lists := c.kindOf("volume"), c.kindOf("list"); single > maxReads+2 || lists != 1 {
			t.Errorf("%d single reads and %d listings for 100 readers at once", single, lists)
		}
		if took := time.Since(begun); took > 500*time.Millisecond {
			t.Errorf("took %v", took)
		}
	})
}

func TestACloudThatAnswersSlowlyIsNotAskedAllTheTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *cloudOf) {
		c.latency = time.Second
		c.becomes(volume.Available, 20*time.Second)
	}, func(t *testing.T, h *Hub, c *cloudOf) {
		if _, err := h.Await(t.Context(), "a", available); err != nil {
			t.Fatal(err)
		}
		if n := c.count(); n > 11 {
			t.Errorf("%d calls of a second each in 20 s", n)
		}
	})
}

func TestAListingThatDoesNotEndIsLeftWhenNobodyWaitsAnyMore(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *cloudOf) {
		c.becomes(volume.Available, time.Hour)
		c.latency = 100 * time.Millisecond
		c.pages = func(n int) []volume.Volume { return []volume.Volume{{ID: volume.ID(fmt.Sprint("other-", n))}} }
	}, func(t *testing.T, h *Hub, c *cloudOf) {
		var all sync.WaitGroup
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for i := range 20 {
			all.Go(func() { _, _ = h.Await(ctx, volume.ID(fmt.Sprint("v", i)), available) })
		}
		all.Wait()
		time.Sleep(time.Second)
		listed := c.count()
		time.Sleep(time.Hour)
		if c.count() != listed || listed == 0 {
			t.Errorf("%d calls while somebody waited, %d more in the hour after", listed, c.count()-listed)
		}
	})
}

func TestACloudThatIgnoresTheMarkerEndsNoWaitAndIsNotAskedAllTheTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(c *cloudOf) {
		c.becomes(volume.Available, time.Hour)
		c.latency = 10 * time.Millisecond
		c.pages = func(int) []volume.Volume { return []volume.Volume{{ID: "a"}, {ID: "b"}} }
	}, func(t *testing.T, h *Hub, c *cloudOf) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				_, err := h.Await(ctx, volume.ID(fmt.Sprint("v", i)), available)
				if !volume.Is(err, volume.DeadlineExceeded) || !strings.Contains(err.Error(), "its status is creating") {
					t.Errorf("error %v", err)
				}
			})
		}
		all.Wait()
		if n := c.count(); n > 700 {
			t.Errorf("%d calls in a minute for 20 waiters, want those of 20 single waits at half the rate", n)
		}
	})
}
