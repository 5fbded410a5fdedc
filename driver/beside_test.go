package driver

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
)

// A panic beside the server must not end the process, nor may the part be missing from then on.
func TestAPartOfTheDriverThatPanicsBeginsAgain(t *testing.T) {
	failure := errors.New("the listener is closed")
	for name, c := range map[string]struct {
		panics, runs int
		err          error
		stops        time.Duration // the work; 0: never
	}{
		"it ends":                     {runs: 1},
		"an error ends the process":   {runs: 1, err: failure},
		"two panics":                  {panics: 2, runs: 3},
		"a panic before an error":     {panics: 1, runs: 2, err: failure},
		"the driver stops in a pause": {panics: 5, runs: 4, stops: 2*restartPause + restartPause/2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				work, stop := context.WithCancel(t.Context())
				defer stop()
				if c.stops > 0 {
					time.AfterFunc(c.stops, stop)
				}
				p, runs := &process{log: slog.New(slog.NewTextHandler(&log, nil)), background: &errgroup.Group{}}, 0
				p.beside(work, "the reload", func() error {
					if runs++; runs <= c.panics {
						panic("a defect")
					}
					return c.err
				})
				err := p.background.Wait()
				if runs != c.runs || !errors.Is(err, c.err) {
					t.Errorf("want %d runs and %v, got %d and %v", c.runs, c.err, runs, err)
				}
				if n := strings.Count(log.String(), "part=\"the reload\" panic=\"a defect\""); n != min(c.panics, c.runs) || n > 0 && !strings.Contains(log.String(), "beside_test.go") {
					t.Errorf("want each panic in the log with its stack, got %d: %s", n, log.String())
				}
			})
		})
	}
}
