package node

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/driver/volume"
)

func TestOneOperationAtATimePerVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newInFlight(slog.New(slog.DiscardHandler))
		release := make(chan struct{})
		first := make(chan error, 1)
		go func() {
			first <- l.run(t.Context(), "a", "stage", func(context.Context) error { <-release; return nil })
		}()
		synctest.Wait()
		nothing := func(context.Context) error { return nil }
		err := l.run(t.Context(), "A", "unstage", nothing)
		if !volume.Is(err, volume.Busy) || !strings.Contains(err.Error(), "(stage)") {
			t.Errorf("want the operation in flight named, got %v", err)
		}
		if err := l.run(t.Context(), "b", "stage", nothing); err != nil {
			t.Errorf("want another volume free, got %v", err)
		}
		close(release)
		if err := <-first; err != nil {
			t.Error(err)
		}
		if err := l.run(t.Context(), "a", "unstage", nothing); err != nil {
			t.Errorf("want the volume free at once, got %v", err)
		}
	})
}

// The caller may send its next call as soon as it has the answer.
func TestAVolumeIsFreeBeforeItsCallerHasTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newInFlight(slog.New(slog.DiscardHandler))
		var held map[string]string
		answered := make(chan error, 1)
		go func() {
			answered <- l.run(t.Context(), "a", "stage", func(context.Context) error { held = <-l.operations; return nil })
		}()
		synctest.Wait()
		select {
		case <-answered:
			t.Error("want no answer before the volume is free")
		default:
		}
		l.operations <- held
		if err := <-answered; err != nil {
			t.Error(err)
		}
	})
}

// An error may be shared, as between the callers that wait for one disk.
func TestRunNamesTheOperationAndKeepsTheSharedError(t *testing.T) {
	l, shared := newInFlight(slog.New(slog.DiscardHandler)), volume.Errorf(volume.NotFound, "no disk")
	for _, verb := range []string{"stage", "expand"} {
		err := l.run(t.Context(), "a", verb, func(context.Context) error { return shared })
		if err == nil || err.Error() != verb+": no disk" || !volume.Is(err, volume.NotFound) {
			t.Errorf("got %v", err)
		}
	}
	if shared.Operation != "" {
		t.Errorf("the work's own error became %v", shared)
	}
}

func TestAStuckOperationLocksItsVolumeAndFreesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newInFlight(slog.New(slog.DiscardHandler))
		release := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ctx, _ = volume.WithProgress(ctx)
		began := time.Now()
		err := l.run(ctx, "a", "unstage", func(ctx context.Context) error {
			defer volume.BeginStep(ctx, "running mkfs.ext4 on /dev/vdb")()
			<-release
			return nil
		})
		if !volume.Is(err, volume.DeadlineExceeded) || ctx.Err() != nil {
			t.Errorf("want the deadline's error while the caller still waits, got %v after %s", err, time.Since(began))
		}
		if want := "(running mkfs.ext4 on /dev/vdb since " + began.Format(time.RFC3339) + ")"; !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in the error, got %q", want, err)
		}
		if err := l.run(t.Context(), "a", "stage", nil); !volume.Is(err, volume.Busy) {
			t.Errorf("want the volume busy while the work goes on, got %v", err)
		}
		close(release)
		synctest.Wait()
		if err := l.run(t.Context(), "a", "stage", func(context.Context) error { return nil }); err != nil {
			t.Errorf("want the volume free after the work, got %v", err)
		}
	})
}

func TestAnOperationThatEndsWithItsContextReturnsItsOwnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newInFlight(slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		err := l.run(ctx, "a", "stage", func(ctx context.Context) error {
			<-ctx.Done()
			return volume.Errorf(volume.Canceled, "its own words")
		})
		if err == nil || err.Error() != "stage: its own words" {
			t.Errorf("want the work's own words, got %v", err)
		}
	})
}

func TestAPanicIsAnErrorAndFreesTheVolume(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	l := newInFlight(slog.New(slog.NewTextHandler(&log, nil)))
	err := l.run(t.Context(), "a", "stage", func(context.Context) error { panic("oops") })
	if !volume.Is(err, volume.Unknown) || strings.Contains(err.Error(), "oops") {
		t.Errorf("want an error without the panic's words, got %v", err)
	}
	if !strings.Contains(log.String(), "oops") || !strings.Contains(log.String(), "inflight_test.go") {
		t.Errorf("want the panic and its stack in the log, got %s", log.String())
	}
	if err := l.run(t.Context(), "a", "stage", func(context.Context) error { return nil }); err != nil {
		t.Errorf("want the volume free, got %v", err)
	}
}

func TestDrainWaitsForOperationsWithoutACaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newInFlight(slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		finish := make(chan struct{})
		if err := l.run(ctx, vol, "stage", func(context.Context) error { <-finish; return nil }); err == nil {
			t.Fatal("want an error that says that the operation continues")
		}
		began := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 8*time.Second)
		defer cancel()
		l.drain(short)
		if took := time.Since(began); took != 8*time.Second {
			t.Errorf("want an end to the waiting after 8 s, took %s", took)
		}
		time.AfterFunc(3*time.Second, func() { close(finish) })
		began = time.Now()
		l.drain(t.Context())
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("want drain to wait for the work, 3 s, took %s", took)
		}
	})
}
