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

// csi-test's sanity suite in a project of its own, which is empty again at the end.
func TestSanityInAProjectOfItsOwn(t *testing.T) {
	bed, err := filepath.Abs(bed(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{ // a comma in a name would part the paths in flags
		"file systems": nil, "file systems in two processes": {"-split"}, "raw block": {"-access", "block"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t, bed, zonesOfBed[0])
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "go", append([]string{
				"test", "-count", "1", "-timeout", "14m", ".", "-bed", bed, "-cloud-config", x.conf, "-server", x.servers[0].name,
			}, flags...)...)
			cmd.Dir = filepath.Join("..", "sanity")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			t.Log(strings.Join(lines[max(0, len(lines)-3):], "; "))
		})
	}
}
