package testenv

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Processor is how long a function keeps the processors busy, with all that it starts in this process. No other test may run beside it. The
// time of the clock says little on a busy machine.
func Processor(t testing.TB, run func()) time.Duration {
	t.Helper()
	now := func() time.Duration {
		var used unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
			t.Fatal(err)
		}
		return time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	began := now()
	run()
	return now() - began
}
