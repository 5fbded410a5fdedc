//go:build openstack

package openstack

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// users are the entries of clouds.yaml for the project demo: the same cloud with different rights.
var users = []string{"lab-demo-admin", "lab-demo", "lab-reader", "lab-appcred"}

var (
	targets = []string{"vanilla", "standalone", "hypershift"}
	formats = []string{"kustomize", "helm"}
)

func cloudsFile(bed string) []string {
	return []string{"OS_CLIENT_CONFIG_FILE=" + filepath.Join(bed, "clouds.yaml")}
}

func TestInspectListsWhatTheCloudOffersAndWhatWasDenied(t *testing.T) {
	bed, generator := bed(t), program(t, "cinder-csi-generator")
	types := 4
	if settingsOf(t, bed).Compute == "libvirt" {
		types++ // an encrypted one
	}
	for _, user := range users {
		out, messages, code := run(t, cloudsFile(bed), generator, "inspect", "--os-cloud", user, "-o", "json")
		if code != 0 {
			t.Fatalf("%s: exit %d: %s", user, code, messages)
		}
		var inventory v1alpha1.Inventory
		if err := json.Unmarshal([]byte(out), &inventory); err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		if n := len(inventory.Zones.Compute.Value); inventory.Zones.Compute.State != v1alpha1.Known || n != 2 {
			t.Errorf("%s: want 2 compute zones, got %+v", user, inventory.Zones.Compute)
		}
		if n := len(inventory.Zones.Volume.Value); inventory.Zones.Volume.State != v1alpha1.Known || n != 2 {
			t.Errorf("%s: want 2 volume zones, got %+v", user, inventory.Zones.Volume)
		}
		if inventory.VolumeTypes.State != v1alpha1.Known || len(inventory.VolumeTypes.Value) != types {
			t.Errorf("%s: want %d volume types, got %+v", user, types, inventory.VolumeTypes)
		}
		if inventory.Limits.State != v1alpha1.Known || inventory.Limits.Value.Volumes != 300 {
			t.Errorf("%s: want a limit of 300 volumes, got %+v", user, inventory.Limits)
		}
		want := v1alpha1.Denied
		if user == "lab-demo-admin" {
			want = v1alpha1.Known
		}
		for _, kind := range inventory.VolumeTypes.Value {
			if kind.Encryption.State != want {
				t.Errorf("%s: encryption of type %s: want %s, got %+v", user, kind.Name, want, kind.Encryption)
			}
		}
	}
}

// distribution names a registry, without which generate refuses a real cloud. Nobody runs these bundles.
func distribution(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "distribution.yaml")
	testfile.Write(t, file, "spec: {images: {registry: mirror.invalid}}\n", 0o600)
	return file
}

// generate writes one bundle and returns its files.
func generate(t *testing.T, bed, user, target, format, dir string) map[string]string {
	t.Helper()
	_, messages, code := run(t, cloudsFile(bed), program(t, "cinder-csi-generator"),
		"generate", "--os-cloud", user, "--target", target, "--format", format, "--output-dir", dir, "--config", distribution(t))
	if code != 0 {
		t.Fatalf("%s %s %s: exit %d: %s", user, target, format, code, messages)
	}
	return tree(t, dir)
}

func TestEveryUserGetsTheSameBundlesByteForByteAndAgain(t *testing.T) {
	bed := bed(t)
	for _, target := range targets {
		for _, format := range formats {
			dir := t.TempDir()
			want := generate(t, bed, users[0], target, format, dir)
			t.Logf("%s %s: %s", target, format, describe(want))
			if diff := cmp.Diff(want, generate(t, bed, users[0], target, format, dir)); diff != "" {
				t.Errorf("%s %s: a second run differs:\n%s", target, format, diff)
			}
			for _, user := range users[1:] {
				if diff := cmp.Diff(want, generate(t, bed, user, target, format, t.TempDir())); diff != "" {
					t.Errorf("%s %s: %s differs from %s:\n%s", target, format, user, users[0], diff)
				}
			}
		}
	}
}

func TestKubectlBuildsEveryPlane(t *testing.T) {
	bed, kubectl := bed(t), program(t, "tools/kubectl")
	total := 0
	for _, target := range targets {
		dir := t.TempDir()
		generate(t, bed, "lab-demo", target, "kustomize", dir)
		planes := []string{dir}
		if target == "hypershift" {
			planes = []string{filepath.Join(dir, "management"), filepath.Join(dir, "guest")}
		}
		for _, plane := range planes {
			out, messages, code := run(t, nil, kubectl, "kustomize", plane)
			if code != 0 {
				t.Fatalf("%s: kubectl kustomize: %s", target, messages)
			}
			n := strings.Count("\n"+out, "\nkind: ")
			t.Logf("%s %s: %d objects", target, filepath.Base(plane), n)
			if n < 5 {
				t.Errorf("%s: want at least 5 objects, got %d", plane, n)
			}
			total += n
		}
	}
	if total < 80 {
		t.Errorf("want at least 80 objects in the four planes, got %d", total)
	}
}

func TestCheckFindsAVolumeTypeAddedToTheCloud(t *testing.T) {
	bed, generator := bed(t), program(t, "cinder-csi-generator")
	dir := t.TempDir()
	before := generate(t, bed, "lab-reader", "vanilla", "kustomize", dir)
	check := func() (string, int) {
		out, messages, code := run(t, cloudsFile(bed), generator, "generate", "--os-cloud", "lab-reader",
			"--target", "vanilla", "--format", "kustomize", "--output-dir", dir, "--check", "--diff", "--config", distribution(t))
		return out + messages, code
	}
	if said, code := check(); code != 0 {
		t.Fatalf("want exit 0 for an unchanged cloud, got %d: %s", code, said)
	}
	newAdmin(t, bed).addType(t, "bed-new-type", map[string]string{})
	said, code := check()
	if code != 2 {
		t.Errorf("want exit 2 after a type was added, got %d", code)
	}
	if !strings.Contains(said, "bed-new-type") {
		t.Errorf("want the new type to be named, got: %s", said)
	}
	if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
		t.Errorf("--check wrote:\n%s", diff)
	}
}

func TestBadInputEndsWithOneClearErrorAndNothingWritten(t *testing.T) {
	bed, generator := bed(t), program(t, "cinder-csi-generator")
	cases := []struct {
		name string
		env  []string
		args []string
		want int
	}{
		{"no such cloud", cloudsFile(bed), []string{"--os-cloud", "nowhere", "--target", "vanilla"}, 64},
		{"unreachable Keystone", []string{
			"OS_AUTH_URL=http://127.0.0.1:1/v3", "OS_USERNAME=u", "OS_PASSWORD=p", "OS_PROJECT_NAME=p",
			"OS_USER_DOMAIN_NAME=Default", "OS_PROJECT_DOMAIN_NAME=Default",
		}, []string{"--target", "vanilla"}, 1},
		{"wrong secret", []string{"OS_CLIENT_CONFIG_FILE=" + wrongSecret(t, bed)}, []string{"--os-cloud", "wrong-secret", "--target", "vanilla"}, 1},
		{"unknown target", cloudsFile(bed), []string{"--os-cloud", "lab-demo", "--target", "nomad"}, 64},
	}
	for _, c := range cases {
		dir := filepath.Join(t.TempDir(), "out")
		args := append([]string{"generate", "--format", "kustomize", "--output-dir", dir}, c.args...)
		out, messages, code := run(t, c.env, generator, args...)
		if code != c.want {
			t.Errorf("%s: want exit %d, got %d: %s", c.name, c.want, code, messages)
		}
		if out != "" || strings.Count(strings.TrimSpace(messages), "\n") > 3 {
			t.Errorf("%s: want one clear error on stderr, got stdout %q stderr %q", c.name, out, messages)
		}
		if matches, _ := filepath.Glob(dir + "*"); len(matches) != 0 {
			t.Errorf("%s: something was written: %v", c.name, matches)
		}
	}
}
