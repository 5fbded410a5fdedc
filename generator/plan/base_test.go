package plan

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestTheBaseAsksForWhatLimitsAreHeldTo reads what manifests/ really has: a limit is judged by it.
func TestTheBaseAsksForWhatLimitsAreHeldTo(t *testing.T) {
	planes := map[string]string{"Deployment": "controller", "DaemonSet": "node"}
	containers := 0
	err := filepath.WalkDir("../../manifests", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var workload struct {
			Kind string
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct {
							Name      string
							Resources struct{ Requests map[string]string }
						}
					}
				}
			}
		}
		if yaml.Unmarshal(text, &workload) != nil || planes[workload.Kind] == "" {
			return nil // a document of another shape
		}
		for _, c := range workload.Spec.Template.Spec.Containers {
			if c.Resources.Requests == nil {
				continue // a patch of something else
			}
			containers++
			if diff := cmp.Diff(c.Resources.Requests, base().requests[planes[workload.Kind]+"/"+ImageOf(c.Name)]); diff != "" {
				t.Errorf("%s: %s, -manifests +assumed\n%s", path, c.Name, diff)
			}
		}
		return nil
	})
	if err != nil || containers < 9 {
		t.Errorf("%d containers: %v; want driver and sidecars of both planes", containers, err)
	}
}
