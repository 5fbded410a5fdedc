//go:build openstack

package openstack

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The test runs test/suite/conformance as a person does, against the driver on a real cloud and real devices.
func TestTheDriverConformsOnARealCloud(t *testing.T) {
	bed := bed(t)
	x := newTenant(t, bed, zonesOfBed[0], secondZone(t, bed))
	d := x.start(t, x.servers[0])
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "run", "../conformance", "--endpoint", "unix://"+d.socket,
		"--nodes", x.servers[0].id+","+x.servers[1].id, "--zones", strings.Join(zonesOfBed, ","), "--stage", filepath.Join(t.TempDir(), "stage"), "--fs-type", "xfs",
		"--parameter", "type=standard", "--shared", "type=multiattach", "--backup", "type=backup",
		"--mutable", "type=multiattach", "--mutable", "metadata.purpose=conformance").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("conformance: %v", err)
	}
	if strings.Contains(string(out), "\nskip ") {
		t.Error("want no skipped case on this cloud")
	}
}
