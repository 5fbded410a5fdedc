package doctor

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func TestEachImageIsAskedOfItsRegistry(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	there := host + "/driver:v1"
	ref, err := name.ParseReference(there)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, empty.Image); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, image string
		through     http.RoundTripper
		severity    Severity
		says        string
	}{
		{"there", there, http.DefaultTransport, OK, "the registry has " + there},
		{"another tag", host + "/driver:v2", http.DefaultTransport, Error, "the registry refuses " + host + "/driver:v2: HTTP 404 Not Found"},
		{"no reference", "Driver:v1:v2", http.DefaultTransport, Error, "is not a reference"},
		{"no network", "registry.example/driver:v1", refuse{}, Warning, "registry registry.example cannot be asked for 1 images"},
		{"the default", "registry.invalid/cinder-csi/cinder-csi-driver:v0.1.0", refuse{}, Error, "no registry is named for the driver image"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := NewReport("test")
			r.CheckImages(t.Context(), []string{test.image}, test.through)
			if !has(r, "image", test.severity, test.says) {
				t.Errorf("want %s with %q, got %+v", test.severity, test.says, r.Findings)
			}
		})
	}
}

func TestARegistryThatDoesNotAnswerIsAskedOnce(t *testing.T) {
	asked := 0
	through := roundTrip(func(*http.Request) (*http.Response, error) {
		asked++
		return refuse{}.RoundTrip(nil)
	})
	r := NewReport("test")
	r.CheckImages(t.Context(), []string{"registry.example/a:v1"}, through)
	once := asked
	r = NewReport("test")
	r.CheckImages(t.Context(), []string{"registry.example/a:v1", "registry.example/b:v1", "registry.example/c:v1"}, through)
	if asked-once != once || len(r.Findings) != 1 || !has(r, "image", Warning, "3 images") {
		t.Errorf("want %d requests and one finding, got %d and %+v", once, asked-once, r.Findings)
	}
}
