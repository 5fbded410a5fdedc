//go:build render

package overlays_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestToolsBuildEveryExample(t *testing.T) {
	for _, target := range targets {
		planes := []string{"."}
		if target == "hypershift" {
			planes = []string{"management", "guest"}
		}
		for _, plane := range planes {
			for name, args := range map[string][]string{
				"kubectl": {"kustomize", filepath.Join(target, "kustomize", plane)},
				"helm":    {"template", "any", "../charts/cinder-csi", "-f", filepath.Join(target, "helm", plane, "values.yaml")},
			} {
				out, err := exec.CommandContext(t.Context(), "../bin/tools/"+name, args...).CombinedOutput()
				if err != nil {
					t.Errorf("%s %v: %v\n%s", name, args, err, out)
				}
				if n := strings.Count("\n"+string(out), "\nkind: "); n < 5 {
					t.Errorf("%s %v: want at least 5 objects, got %d", name, args, n)
				}
			}
		}
	}
}
