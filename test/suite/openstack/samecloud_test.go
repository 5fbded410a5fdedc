//go:build openstack

package openstack

import (
	"bytes"
	"context"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cinder-csi/cinder-csi/test/kit/csitest"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// editedKeystone edits the catalog of each login; nobody else sees the edits. Cinder has an address of its own there.
type editedKeystone struct {
	authURL string
	cinder  *httptest.Server // the old address
	without atomic.Value     // a service type
	moved   atomic.Bool
}

func newEditedKeystone(t *testing.T, authURL string) *editedKeystone {
	t.Helper()
	target := testenv.Value(url.Parse(authURL))(t)
	f := &editedKeystone{}
	f.without.Store("")
	f.authURL = newCatalogProxy(t, authURL, f.edited)
	f.cinder = httptest.NewServer(httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Hostname() + ":8776"}))
	t.Cleanup(f.cinder.Close)
	return f
}

func (f *editedKeystone) edited(services []any) []any {
	services = slices.DeleteFunc(services, func(s any) bool { return s.(map[string]any)["type"] == f.without.Load() })
	moveEndpoints(services, func(u *url.URL) {
		if u.Port() == "8776" && !f.moved.Load() {
			u.Host = strings.TrimPrefix(f.cinder.URL, "http://")
		}
	})
	return services
}

// A file that leads elsewhere is refused, and the way back works. Nothing is said to be done that is not.
func TestTheDriverStaysInTheCloudThatItKnows(t *testing.T) {
	bed := bed(t)
	owner, address := newKeystone(t, bed, "lab-demo"), freeAddress(t)
	f := newEditedKeystone(t, owner.authURL)
	conf := func() []byte {
		return bytes.Replace(owner.conf(owner.newCredential(t, nil)), []byte(owner.authURL), []byte(f.authURL), 1)
	}
	// Each has a credential of its own, which goes after the test. All are made before the volumes, whose deletes need them.
	first, withoutNova, back := conf(), conf(), conf()
	path := filepath.Join(t.TempDir(), "cloud.conf")
	project(t, path, first)
	d := startDriverWith(t, bed, path, "--http-endpoint="+address)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	read := func(id string) error {
		return csitest.Outcome(d.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id}))
	}
	failures := 0
	refused := func(what string, content []byte) {
		t.Helper()
		project(t, path, content)
		failures++
		eventually(t, what+" is refused", func() bool {
			return hasMetric(t, address, `cinder_csi_config_reloads_total{result="success"} 0`) &&
				!hasMetric(t, address, `cinder_csi_config_reloads_total{result="failure"} `+strconv.Itoa(failures-1))
		})
		id := newVolume(t, d, "ext4").GetVolumeId()
		if _, err := d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
			t.Errorf("%s: delete: %v", what, err)
		}
		if err := read(id); err == nil {
			t.Errorf("%s: the volume was not deleted", what)
		}
	}
	other := testfile.Read(t, newTenant(t, bed).conf)
	refused("another project", other)
	f.without.Store("compute")
	refused("a catalog without Nova", withoutNova)
	f.without.Store("")

	id := newVolume(t, d, "ext4").GetVolumeId()
	f.moved.Store(true)
	f.cinder.Close()
	began := time.Now()
	for err := read(id); err != nil; err = read(id) {
		if time.Since(began) > time.Minute {
			t.Fatalf("Cinder moved, and a minute later: %v", err)
		}
		time.Sleep(time.Second)
	}
	t.Logf("the new address of Cinder was found after %v", time.Since(began).Round(time.Millisecond))
	project(t, path, back)
	eventually(t, "the way back", func() bool { return hasMetric(t, address, `cinder_csi_config_reloads_total{result="success"} 1`) })
	if _, err := d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: id}); err != nil {
		t.Error(err)
	}
}
