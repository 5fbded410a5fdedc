// Package panics turns the panic of a goroutine into an error. The recovery of an RPC protects the goroutine of that RPC alone. A panic in
// any other goroutine ends the process, and with it the operations of all volumes.
//
// It keeps in memory how many panics there were.
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync/atomic"
)

// Error is a panic. Its text has the first line of the value and no stack: errors reach events.
type Error struct{ What, Stack string }

func (e *Error) Error() string { return "panic: " + e.What }

var seen atomic.Uint64

// Seen is how many panics there were in this process.
func Seen() uint64 { return seen.Load() }

// Try returns the error of fn. A panic of fn is an *Error. A panic with an *Error is that of a call which several callers share, and counts once.
func Try(fn func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Error:
			err = p
		default:
			seen.Add(1)
			what, _, _ := strings.Cut(fmt.Sprint(p), "\n")
			err = &Error{fmt.Sprintf("%.200s", what), string(debug.Stack())}
		}
	}()
	return fn()
}

// Log logs err if it is a panic, and reports whether it is one. What names the part of the driver.
func Log(log *slog.Logger, what string, err error) bool {
	var defect *Error
	if !errors.As(err, &defect) {
		return false
	}
	log.Error("a part of the driver panicked; please report this defect", "part", what, "panic", defect.What, "stack", defect.Stack)
	return true
}

// Go runs fn in a goroutine, and logs its panic.
func Go(log *slog.Logger, what string, fn func()) {
	go func() {
		Log(log, what, Try(func() error { fn(); return nil }))
	}()
}
