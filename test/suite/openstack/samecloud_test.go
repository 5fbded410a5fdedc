//go:build openstack

package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// editedKeystone is a proxy before Keystone that edits the catalog of each login; nobody else sees the edits. Cinder has an address of its own there.
type editedKeystone struct {
	keystone *httptest.Server
	cinder   *httptest.Server // the old address
	without  atomic.Value     // a service type
	moved    atomic.Bool
}

func newEditedKeystone(t *testing.T, authURL string) *editedKeystone {
	t.Helper()
	target, err := url.Parse(authURL)
	if err != nil {
		t.Fatal(err)
	}
	f := &editedKeystone{}
	f.without.Store("")
	root := &url.URL{Scheme: target.Scheme, Host: target.Host}
	proxy := httputil.NewSingleHostReverseProxy(root)
	proxy.ModifyResponse = func(resp *http.Response) error {
		if resp.Request.Method != http.MethodPost || !strings.HasSuffix(resp.Request.URL.Path, "/auth/tokens") {
			return nil
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return err
		}
		body = f.edited(body)
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
		return nil
	}
	f.keystone = httptest.NewServer(proxy)
	t.Cleanup(f.keystone.Close)
	cinder := *root
	cinder.Host = target.Hostname() + ":8776"
	f.cinder = httptest.NewServer(httputil.NewSingleHostReverseProxy(&cinder))
	t.Cleanup(f.cinder.Close)
	return f
}

func (f *editedKeystone) edited(body []byte) []byte {
	var answer map[string]map[string]any
	if json.Unmarshal(body, &answer) != nil || answer["token"] == nil { // a refusal
		return body
	}
	catalog, _ := answer["token"]["catalog"].([]any)
	catalog = slices.DeleteFunc(catalog, func(s any) bool { return s.(map[string]any)["type"] == f.without.Load() })
	for _, s := range catalog {
		for _, e := range s.(map[string]any)["endpoints"].([]any) {
			endpoint := e.(map[string]any)
			if u, err := url.Parse(endpoint["url"].(string)); err == nil && u.Port() == "8776" && !f.moved.Load() {
				u.Host = strings.TrimPrefix(f.cinder.URL, "http://")
				endpoint["url"] = u.String()
			}
		}
	}
	answer["token"]["catalog"] = catalog
	body, _ = json.Marshal(answer)
	return body
}

// A file that leads elsewhere is refused, and the way back works. Nothing is said to be done that is not.
func TestTheDriverStaysInTheCloudThatItKnows(t *testing.T) {
	bed := bed(t)
	owner, address := newKeystone(t, bed, "lab-demo"), freeAddress(t)
	f := newEditedKeystone(t, owner.authURL)
	conf := func() []byte {
		return bytes.Replace(owner.conf(owner.newCredential(t, nil)), []byte(owner.authURL), []byte(f.keystone.URL+"/v3"), 1)
	}
	// Each has a credential of its own, which goes after the test. All are made before the volumes, whose deletes need them.
	first, withoutNova, back := conf(), conf(), conf()
	path := filepath.Join(t.TempDir(), "cloud.conf")
	project(t, path, first)
	d := startDriverWith(t, bed, path, "--http-endpoint="+address)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	read := func(id string) error {
		_, err := d.controller.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: id})
		return err
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
	other, err := os.ReadFile(newTenant(t, bed).conf)
	if err != nil {
		t.Fatal(err)
	}
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
