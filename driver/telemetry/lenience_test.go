package telemetry

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

func TestWhatIsLetPassIsCountedByKind(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	l := NewLenience(registry)
	l("unknown parameter")
	l("unknown parameter")
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if want := `cinder_csi_lenient_inputs_total{kind="unknown parameter"} 2`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("want %s in\n%s", want, w.Body.String())
	}
}

func TestActionsAreToldApartByTheirBodies(t *testing.T) {
	for body, want := range map[string]string{`{"os-retype":{"new_type":"x"}}`: "volume_retype", `{"os-extend":{"new_size":2}}`: "volume_expand", "": "volume_expand"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://cloud/v3/p/volumes/1/action", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := nameOf(r); got != want {
			t.Errorf("%s: want %s, got %s", body, want, got)
		}
	}
}

// A kind that is not in the list would begin as a new series, and an increase from nothing raises no alert.
func TestTheListOfLenientKindsIsComplete(t *testing.T) {
	files, err := filepath.Glob("../controller/*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, file := range files {
		text := testfile.Text(t, file)
		for _, m := range regexp.MustCompile(`tolerate\(ctx, "([^"]+)"`).FindAllStringSubmatch(text, -1) {
			found[m[1]] = true
		}
	}
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, slices.Sorted(slices.Values(lenientKinds))) {
		t.Errorf("package controller reports %q", got)
	}
}
