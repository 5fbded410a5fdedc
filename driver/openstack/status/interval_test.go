package status

import (
	"testing"
	"time"
)

// A short wait polls often, and the longest every five seconds.
func TestAWaiterPollsLessOftenTheLongerItWaits(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		0: 150 * time.Millisecond, time.Second: 150 * time.Millisecond, 10 * time.Second: 800 * time.Millisecond,
		time.Minute: 4800 * time.Millisecond, 63 * time.Second: 5 * time.Second, time.Hour: 5 * time.Second,
	} {
		if got := interval(age).Round(time.Millisecond); got != want {
			t.Errorf("after %v: %v, want %v", age, got, want)
		}
	}
}
