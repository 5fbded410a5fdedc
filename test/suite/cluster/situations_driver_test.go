//go:build cluster

package cluster

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var driverSituations = []situation{
	{name: "node-full", cause: "pod.attach-limit", begin: func(t *testing.T, c *cluster) func() error {
		claims := []claim{{name: "full-0", gib: 1}, {name: "full-1", gib: 1}, {name: "full-2", gib: 1}, {name: "node-full", gib: 1}}
		c.start(t, claims[:3], pod{name: "full", claim: "full-0", more: []string{"full-1", "full-2"}, node: "node-az2"})
		c.create(t, claims[3:], pod{name: "node-full", claim: "node-full", node: "node-az2"})
		return nil
	}},
	{
		name: "what a full node has", command: []string{"kubectl", "cinder", "node", "node-az2", "--os-cloud", "lab-demo"},
		says: []string{
			"Node node-az2: Ready", "registered, limit 3, 3 attached", "shop/full-0", "shop/full-1", "shop/full-2", "attached yes in-use",
			"has no room for one more volume: 3 are attached, and the limit is 3",
		},
		begin: func(t *testing.T, c *cluster) func() error {
			return func() error { return errors.Join(c.deletedPod("full"), c.deletedPod("node-full")) }
		},
	},
	{name: "wrong upgrade", command: []string{"kubectl", "cinder", "version"}, says: []string{":broken", "the pod is not ready"}, begin: wrongUpgrade},
}

// wrongUpgrade applies a bundle whose driver ends at once. The rollout stops at its first pods. The page's way back ends it.
func wrongUpgrade(t *testing.T, c *cluster) func() error {
	broken, now := *c, *c
	broken.work, now.work = t.TempDir(), t.TempDir()
	fresh := strings.Replace(situationDistribution, "  images:", "  images:\n    driver: {tag: broken}", 1)
	bad, good := broken.generate(t, "kustomize", fresh), now.generate(t, "kustomize", situationDistribution)
	image := imageTagged(t, bad.objects(t, "kustomize"), ":broken")
	for _, node := range nodes {
		c.onNode(t, node, "ctr", "--namespace=k8s.io", "images", "tag", "--force", "docker.io/cluster-bed/workload:1", image)
	}
	c.kubectl(t, "apply", "--server-side", "-k", bad.dir)
	return func() error {
		good.upgradeBy(t, "Go back")
		return nil
	}
}

// reportSafely writes a support bundle, and looks in it for every secret of the cloud and of the cluster. One stands where the report reads: in an annotation.
func (r *recovery) reportSafely(t *testing.T) {
	t.Helper()
	secrets := r.secrets(t)
	deployment, in := "deployment/cinder-csi-controller", "--namespace="+namespaces["controller"]
	r.kubectl(t, "annotate", deployment, in, "note=application_credential_secret: "+secrets["the application credential"])
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	began := time.Now()
	out, err := r.cinderCommand(t, "report", "--os-cloud", "lab-demo", "--file", file)
	took := time.Since(began)
	r.kubectl(t, "annotate", deployment, in, "note-")
	if err != nil {
		t.Errorf("report did not read everything: %v", err)
	}
	files := untar(t, file)
	all := 0
	for name, text := range files {
		all += len(text)
		for secret, value := range secrets {
			if strings.Contains(text, value) {
				t.Errorf("%s of the support bundle has the secret of %s", name, secret)
			}
		}
	}
	for _, want := range []string{
		"versions.json", "list.json", "operations.json", "orphans.json", "lost.json", "unseen.json", "objects/persistentvolumes.json", "objects/csinodes.json",
		"namespaces/cinder-csi/deployments.json", "namespaces/cinder-csi-node/daemonsets.json", "namespaces/cinder-csi/events.json",
	} {
		if files["cinder-csi-report/"+want] == "" {
			t.Errorf("the support bundle has no %s: %s", want, out)
		}
	}
	if note := files["cinder-csi-report/namespaces/cinder-csi/deployments.json"]; !strings.Contains(note, "REDACTED") {
		t.Errorf("the annotation with a secret is not in the support bundle, so nothing was proved")
	}
	fmt.Printf("measured: report in %.1f s: %d files, %d KiB; %d secrets searched\n", took.Seconds(), len(files), all>>10, len(secrets))
}

// secrets are by what they belong to: users of the OpenStack bed, Secrets, the kubeconfig, pods on the nodes. A short value may be in a text by chance.
func (r *recovery) secrets(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	add := func(what, value string) {
		if value = strings.TrimSpace(value); len(value) >= 12 {
			found[what] = value
		}
	}
	passwords := testfile.Text(t, filepath.Join(r.openstack, "state", "passwords"))
	for line := range strings.Lines(passwords) {
		name, value, _ := strings.Cut(line, "=")
		add("the user "+name, value)
	}
	var clouds struct {
		Clouds map[string]struct {
			Auth map[string]string `json:"auth"`
		} `json:"clouds"`
	}
	testenv.Must(t, yaml.Unmarshal([]byte(r.secretText(t)), &clouds))
	add("the application credential", clouds.Clouds["openstack"].Auth["application_credential_secret"])
	if found["the application credential"] == "" {
		t.Fatal("the Secret of the driver has no application credential")
	}
	var all struct {
		Items []struct {
			Metadata struct{ Name, Namespace string }
			Data     map[string]string
		}
	}
	testenv.Must(t, json.Unmarshal([]byte(r.kubectl(t, "get", "secrets", "--all-namespaces", "-o", "json")), &all))
	for _, s := range all.Items {
		for key, value := range s.Data {
			what := "Secret " + s.Metadata.Namespace + "/" + s.Metadata.Name + " " + key
			add(what+" (base64)", value)
			if text, err := base64.StdEncoding.DecodeString(value); err == nil {
				add(what, string(text))
			}
		}
	}
	config := testfile.Text(t, filepath.Join(r.dir, "admin.kubeconfig"))
	_, key, _ := strings.Cut(config, "client-key-data: ")
	key, _, _ = strings.Cut(key, "}")
	add("the kubeconfig", key)
	for _, node := range nodes {
		tokens := r.onNode(t, node, "bash", "-c", `for f in /var/lib/kubelet/pods/*/volumes/kubernetes.io~projected/*/token; do [ ! -e "$f" ] || { cat "$f"; echo; }; done`)
		for i, token := range strings.Fields(tokens) {
			add(fmt.Sprintf("token %d of a pod on %s", i, node), token)
		}
	}
	return found
}

// untar gives the files of an archive.
func untar(t *testing.T, file string) map[string]string {
	t.Helper()
	text := testfile.Read(t, file)
	unzipped := testenv.Value(gzip.NewReader(bytes.NewReader(text)))(t)
	files := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		content := testenv.Value(io.ReadAll(archive))(t)
		files[header.Name] = string(content)
	}
}

var nodeSituations = []situation{
	// The pod is that of the volume that another pod waits for.
	{name: "node-lost", object: "pod/first", cause: "node.not-ready", begin: func(t *testing.T, c *cluster) func() error {
		on := func() error { return c.power(context.Background(), "on", "node-az1") }
		t.Cleanup(func() { _ = on() })
		testenv.Must(t, c.power(t.Context(), "off", "node-az1"))
		return func() error {
			err := on()
			if err == nil {
				_, _, err = c.try(context.Background(), "", "kubectl", "wait", "node/node-az1", "--for=condition=Ready", atMost)
			}
			return err
		}
	}},
}
