package testenv

import (
	"testing"
	"time"
)

// Must ends the test at an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Check reports an error, and the test goes on.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Value is that of a call that must not fail: v := Value(call())(t).
func Value[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		Must(t, err)
		return value
	}
}

// Eventually asks until there is no error, and returns how long that took. After the limit the test ends with the last error.
func Eventually(t testing.TB, limit, pause time.Duration, what string, ask func() error) time.Duration {
	t.Helper()
	for began := time.Now(); ; time.Sleep(pause) {
		switch err := ask(); {
		case err == nil:
			return time.Since(began)
		case time.Since(began) > limit:
			t.Fatalf("%s: not after %s: %v", what, limit, err)
		}
	}
}
