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

// The test runs the sanity suite of csi-test in a separate project, which must be empty at the end.
func TestSanityInAProjectOfItsOwn(t *testing.T) {
	bed, err := filepath.Abs(bed(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{ // no comma in a name, because commas separate the paths in flags
		"file systems": nil, "file systems in two processes": {"-split"}, "raw block": {"-access", "block"},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTenant(t, bed, zonesOfBed[0])
			ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, "go", append([]string{
				"test", "-count", "1", "-timeout", "14m", "-bed", bed, "-cloud-config", x.conf, "-server", x.servers[0].name,
			}, flags...)...)
			cmd.Dir = filepath.Join("..", "sanity")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			lines := strings.Split(strings.TrimSpace(string(out)), "\n") // the last ones have the counts, because no package is named
			t.Log(strings.Join(lines[max(0, len(lines)-3):], "; "))
		})
	}
}
