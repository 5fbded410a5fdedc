package openstacksim

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestTimesAreLogNormalAndTheSameForTheSameWork(t *testing.T) {
	draw := func(seed uint64, from, to int) []time.Duration {
		s := New(Default())
		s.SetLatency(Attach, time.Second)
		s.SetTiming(Timing{Seed: seed, Spread: 0.6})
		var times []time.Duration
		for n := from; n < to; n++ {
			times = append(times, s.takes(Attach, fmt.Sprint("pvc-", n)))
		}
		return times
	}
	const many = 20000
	times := draw(1, 0, many)
	if !slices.Equal(times[100:200], draw(1, 100, 200)) {
		t.Error("what was done before changes how long something takes")
	}
	if slices.Equal(times[:100], draw(2, 0, 100)) {
		t.Error("another seed gives the same times")
	}
	slices.Sort(times)
	median, ratio := times[many/2], float64(times[many*99/100])/float64(times[many/2])
	if median < 970*time.Millisecond || median > 1030*time.Millisecond || ratio < 3.8 || ratio > 4.3 {
		t.Errorf("median %v, 99th percentile %.2f times that; want 1 s and 4", median, ratio)
	}
}

func TestSerialServerRunsOneOperationAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Default())
		if got := s.turn("a", time.Second) + s.turn("a", time.Second); got != 2*time.Second {
			t.Errorf("two at once end after %v in sum", got)
		}
		s.SetTiming(Timing{Serial: true})
		for want := range 3 {
			if got := s.turn("a", time.Second); got != time.Duration(want+1)*time.Second {
				t.Errorf("turn %d is over after %v", want, got)
			}
		}
		if got := s.turn("b", time.Second); got != time.Second {
			t.Errorf("another server waits: %v", got)
		}
		time.Sleep(10 * time.Second)
		if got := s.turn("a", time.Second); got != time.Second {
			t.Errorf("a server that rests waits: %v", got)
		}
	})
}
