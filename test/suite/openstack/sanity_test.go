//go:build openstack

package openstack

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

// The test runs the sanity suite of csi-test in a separate project, which must be empty at the end.
func TestSanityInAProjectOfItsOwn(t *testing.T) {
	bed := testenv.Value(filepath.Abs(bed(t)))(t)
	for name, flags := range map[string][]string{ // no comma in a name, because commas separate the paths in flags
		"file systems": nil, "file systems in two processes": {"-split"}, "raw block": {"-access", "block"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := sanity(t, newTenant(t, bed, zonesOfBed[0]), flags...)
			t.Log(strings.Join(lines[max(0, len(lines)-3):], "; "))
		})
	}
}

// sanity runs csi-sanity and returns the lines of its output. The last ones have the counts, because no package is named.
func sanity(t *testing.T, x *tenant, flags ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 31*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append([]string{
		"test", "-count", "1", "-timeout", "30m", "-bed", x.bed, "-cloud-config", x.conf, "-server", x.servers[0].name,
	}, flags...)...)
	cmd.Dir = filepath.Join("..", "sanity")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// The same suite with upstream's plugin, for the comparison. A spec that it fails is a result.
func TestUpstreamBesideTheDriver(t *testing.T) {
	plugin := os.Getenv("PLUGIN")
	if plugin == "" {
		t.Skip("PLUGIN names no program of upstream's plugin")
	}
	bed := testenv.Value(filepath.Abs(bed(t)))(t)
	x := newTenant(t, bed, zonesOfBed[0])
	for _, line := range sanity(t, x, "-upstream", plugin) {
		if strings.HasPrefix(line, "failed spec: ") || strings.HasPrefix(line, "because: ") || strings.Contains(line, " passed, ") {
			t.Log(line)
		}
	}
	x.empty(t)
}

// empty deletes what a run left in the project, so that the server can go.
func (x *tenant) empty(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"snapshot", "volume"} {
		answer := map[string][]struct{ ID string }{}
		send(t, x.cinder, http.MethodGet, kind+"s", nil, &answer)
		for _, left := range answer[kind+"s"] {
			o := object{kind, left.ID}
			t.Logf("left behind: %s %s, %s", kind, left.ID, x.status(t, o))
			if kind == "volume" && x.status(t, o) == "in-use" {
				send(t, x.nova, http.MethodDelete, "servers/"+x.servers[0].id+"/os-volume_attachments/"+left.ID, nil, nil)
				x.await(t, o, "available")
			}
			x.remove(t, o)
		}
	}
}
