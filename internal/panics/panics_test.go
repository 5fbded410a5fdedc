package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
)

func TestAPanicIsAnErrorWithoutItsStackAndCountsOnce(t *testing.T) {
	failure, shared := errors.New("a failure"), &Error{"shared", "a stack"}
	for name, c := range map[string]struct {
		fn    func() error
		want  string
		stack string // a part of it; empty: no panic
		count uint64
	}{
		"success":             {func() error { return nil }, "<nil>", "", 0},
		"an error":            {func() error { return failure }, "a failure", "", 0},
		"a text":              {func() error { panic("a defect\nsecond line") }, "panic: a defect", "panics_test.go", 1},
		"an error as a panic": {func() error { panic(failure) }, "panic: a failure", "panics_test.go", 1},
		"an index":            {func() error { var none []error; return none[len(failure.Error())] }, "panic: runtime error: index out of range [9] with length 0", "panics_test.go", 1},
		"a long text":         {func() error { panic(strings.Repeat("x", 1000)) }, "panic: " + strings.Repeat("x", 200), "panics_test.go", 1},
		"of a shared call":    {func() error { panic(shared) }, "panic: shared", "a stack", 0},
		"of a call below":     {func() error { return fmt.Errorf("read: %w", Try(func() error { panic("deep") })) }, "read: panic: deep", "panics_test.go", 1},
	} {
		before := Seen()
		err := Try(c.fn)
		if got := fmt.Sprint(err); got != c.want || Seen()-before != c.count {
			t.Errorf("%s: want %q counted %d times, got %q and %d", name, c.want, c.count, got, Seen()-before)
		}
		var defect *Error
		if errors.As(err, &defect) != (c.stack != "") || defect != nil && !strings.Contains(defect.Stack, c.stack) {
			t.Errorf("%s: want a stack with %q, got %+v", name, c.stack, defect)
		}
	}
}

func TestAPanicOfAGoroutineIsInTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, nil))
		Go(logger, "the rescan", func() { panic("a defect") })
		Go(logger, "the watch", func() {})
		synctest.Wait()
		if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, `part="the rescan" panic="a defect" stack=`) || !strings.Contains(text, "panics_test.go") {
			t.Errorf("got %s", text)
		}
	})
}
