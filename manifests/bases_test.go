package manifests_test

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/manifests"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var update = flag.Bool("update", false, "write the bases anew")

// planes are the bases, with the plane that each is applied as.
var planes = map[string]string{"vanilla": "cluster", "standalone": "cluster", "hypershift/management": "management", "hypershift/guest": "guest"}

// readme is for people who use a base without the generator.
const readme = `# The base of %[1]s

` + "`charts/cinder-csi`" + ` rendered with the defaults of the target %[2]s. ` + "`make update`" + ` writes these files; change the chart instead.

- Apply it as it is only after you have named your image: ` + "`registry.invalid`" + ` has none. Put a directory of your own above it with this ` + "`kustomization.yaml`" + `,
  and apply that with ` + "`kubectl apply -k`" + `:
  ` + "`{resources: [PATH/manifests/%[1]s], images: [{name: registry.invalid/cinder-csi/cinder-csi-driver, newName: YOUR-REGISTRY/cinder-csi-driver}]}`" + `.
- The same place is for your patches (` + "`patches:`" + `) and objects, above all StorageClasses: the base has none.
- First apply ` + "`namespace.yaml`" + `, which the kustomization does not have. Then create the Secret ` + "`cinder-csi-credentials`" + ` with the key ` + "`clouds.yaml`" + ` in the namespace of the controller.
- The snapshot CRDs and snapshot-controller must be in the cluster.
- ` + "`cinder-csi-generator generate`" + ` writes such an overlay for your cloud, with its classes and zones.
`

func rendered(t *testing.T) bundle.Tree {
	t.Helper()
	tree := bundle.Tree{}
	for _, target := range []v1alpha1.Target{v1alpha1.Vanilla, v1alpha1.Standalone, v1alpha1.HostedControlPlane} {
		base, err := bundle.Base(verify.Chart, target)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(tree, base.At(string(target)))
	}
	for plane := range planes {
		tree[plane+"/README.md"] = fmt.Appendf(nil, readme, plane, strings.Split(plane, "/")[0])
	}
	return tree
}

func TestTheBasesAreTheChartRendered(t *testing.T) {
	want := rendered(t)
	if *update {
		for _, target := range []string{"vanilla", "standalone", "hypershift"} {
			if err := os.RemoveAll(target); err != nil {
				t.Fatal(err)
			}
		}
		for name, text := range want {
			testfile.Write(t, name, text, 0o644)
		}
		return
	}
	got := map[string]string{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.Contains(name, "/") {
			return err
		}
		text, err := os.ReadFile(name)
		got[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for name, text := range want {
		texts[name] = string(text)
	}
	if diff := cmp.Diff(texts, got); diff != "" {
		t.Errorf("manifests/ is not the chart rendered; make update writes it (-chart +files):\n%s", diff)
	}
}

func TestEachBaseBuildsAndIsCorrect(t *testing.T) {
	for dir, plane := range planes {
		built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := built.AsYaml()
		if err != nil {
			t.Fatal(err)
		}
		objects, err := verify.Decode(text, plane)
		if err != nil {
			t.Fatal(err)
		}
		// What a person brings along; the README of a bundle names these.
		stated := "`cinder-csi` `cinder-csi-node` `cinder-csi-credentials` `service-network-admin-kubeconfig` `clusters-example`"
		for _, f := range verify.Check(objects, stated) {
			t.Errorf("%s: %s", dir, f)
		}
		if len(objects) < 5 {
			t.Errorf("%s: want at least 5 objects, got %d", dir, len(objects))
		}
	}
}

// The defaults of the sidecars are 5 requests and 1 capacity a second. With eight pods of new classes at once, a pod waited 90 seconds for the
// capacity of its class. With 20 requests a second, a tenant with 500 claims and a full quota delayed the volumes of another by 24 seconds.
func TestTheProvisionerIsNotHeldBackByTheDefaultRates(t *testing.T) {
	var deployment struct {
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct {
						Name string
						Args []string
					}
				}
			}
		}
	}
	if err := manifests.Read("Deployment", "cinder-csi-controller", &deployment); err != nil {
		t.Fatal(err)
	}
	for _, c := range deployment.Spec.Template.Spec.Containers {
		if c.Name != "provisioner" {
			continue
		}
		for _, want := range []string{"--kube-api-qps=100", "--kube-api-burst=200", "--kube-api-capacity-qps=20", "--kube-api-capacity-burst=100"} {
			if !slices.Contains(c.Args, want) {
				t.Errorf("the provisioner has no %s", want)
			}
		}
		return
	}
	t.Error("there is no provisioner")
}
