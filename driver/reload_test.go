package driver

import (
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cinder-csi/cinder-csi/driver/telemetry"
)

// The files are read again once a minute. A warning for each time would fill the log.
func TestAWarningOfTheConfigurationComesOnce(t *testing.T) {
	var log strings.Builder
	c := &configuration{
		log: slog.New(slog.NewTextHandler(&log, nil)), metrics: telemetry.NewReload(prometheus.NewRegistry()), logged: map[string]bool{}, weak: map[string]int{},
	}
	for range 3 {
		c.weaknesses("east", []string{"certificates are not verified"})
		c.note("the CA file beside clouds.yaml")
	}
	c.weaknesses("west", []string{"passwords go over HTTP"})
	for text, want := range map[string]int{"certificates are not verified": 1, "passwords go over HTTP": 1, "the CA file beside clouds.yaml": 1} {
		if got := strings.Count(log.String(), text); got != want {
			t.Errorf("%q: want %d lines, got %d: %s", text, want, got, log.String())
		}
	}
}

// A hostile cloud may name another address with each login.
func TestTheWarningsThatAreRememberedAreBounded(t *testing.T) {
	c := &configuration{logged: map[string]bool{}}
	for n := range 3 * mostLogged {
		if text := strconv.Itoa(n); !c.first(text) || c.first(text) {
			t.Fatalf("want %d to be new once", n)
		}
	}
	if len(c.logged) > mostLogged {
		t.Errorf("want at most %d warnings, got %d", mostLogged, len(c.logged))
	}
}
