package hostilecloud

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/internal/cloud"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// commands are the commands of the generator that read a cloud.
func commands(dir string) map[string][]string {
	return map[string][]string{
		"inspect":  {"inspect", "--os-cloud=sim-demo", "--verbose", "--save=" + filepath.Join(dir, "inventory.yaml")},
		"plan":     {"plan", "--os-cloud=sim-demo", "--target=vanilla"},
		"generate": {"generate", "--os-cloud=sim-demo", "--target=vanilla", "--format=helm", "--output-dir=" + filepath.Join(dir, "bundle")},
	}
}

// mostOfGenerator is how many requests one command may send: two for each of up to 2,500 types, and the requests of the other lists.
const mostOfGenerator = 8000

func TestAHostileCloudHoldsNoCommandOfTheGeneratorBeyondItsTimeout(t *testing.T) {
	all := maps.Clone(attacks)
	maps.Copy(all, loginAttacks)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			for command := range commands("") {
				if slices.Contains(alike, name) && command != "inspect" {
					continue // all commands read the cloud in the same way, and this is half of the test's time
				}
				synctest.Test(t, func(t *testing.T) { attackCommand(t, command, all[name]) })
			}
		})
	}
}

func attackCommand(t *testing.T, command string, attack attack) {
	h, dir := newHostile(), t.TempDir()
	clouds := filepath.Join(dir, "clouds.yaml")
	testfile.Write(t, clouds, h.sim.CloudsYAML(cloudURL), 0o600)
	h.arm(attack)
	var stdout, stderr bytes.Buffer
	began := time.Now()
	code := cli.Run(t.Context(), cli.World{
		Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Version: "test", ReadOnly: true,
		Env: func(name string) string { return map[string]string{"OS_CLIENT_CONFIG_FILE": clouds}[name] },
		Connect: func(ctx context.Context, s cloud.Settings, o cloud.Options) (*cloud.Cloud, error) {
			o.Transport = http.RoundTripper(h)
			return cloud.Connect(ctx, s, o)
		},
	}, commands(dir)[command])
	if took := time.Since(began); took > 2*time.Minute+time.Second {
		t.Errorf("%s took %v", command, took)
	}
	if n := h.requests(); n > mostOfGenerator {
		t.Errorf("%s sent %d requests", command, n)
	}
	checkText(t, "stderr of "+command, stderr.String(), longestError)
	checkText(t, "stdout of "+command, stdout.String(), longestLine)
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if unfit(strings.ReplaceAll(string(content), "\t", "")) {
			t.Errorf("%s has control characters", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if strings.Contains(stderr.String(), "this is a bug") || strings.Contains(stdout.String()+stderr.String(), "password: sim") {
		t.Errorf("%s: exit %d: %.3000s", command, code, &stderr)
	}
	if strings.Contains(stderr.String(), "unknown flag") {
		t.Fatalf("%s: %s", command, &stderr)
	}
	h.checkElsewhere(t)
}
