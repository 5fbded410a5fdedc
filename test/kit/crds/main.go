// Command crds copies the published CustomResourceDefinitions that a bundle may need from the Go modules of their projects into a directory.
//
//	crds -dir DIRECTORY
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// The pinned versions. prometheus-operator and OpenShift publish later ones, but these are the newest that the Go proxy serves.
const (
	snapshotter = "github.com/kubernetes-csi/external-snapshotter/client/v8@v8.7.0"
	prometheus  = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	openShift   = "github.com/openshift/api@v0.0.0-20260511191110-9b69e5fa27e9"
	credentials = "github.com/openshift/cloud-credential-operator@v0.0.0-20250417173756-8ff60a024ed9"
)

// definition is a file of a module, with the start of its SHA-256 sum.
type definition struct{ module, file, sum string }

// definitions are those that a bundle may need.
var definitions = []definition{
	{snapshotter, "config/crd/snapshot.storage.k8s.io_volumesnapshotclasses.yaml", "75e6565aac2c0f29"},
	{snapshotter, "config/crd/snapshot.storage.k8s.io_volumesnapshotcontents.yaml", "895a3c1e73b60f06"},
	{snapshotter, "config/crd/snapshot.storage.k8s.io_volumesnapshots.yaml", "b032116e987fb1d7"},
	{snapshotter, "config/crd/groupsnapshot.storage.k8s.io_volumegroupsnapshotclasses.yaml", "0ac1b24c628e73fb"},
	{snapshotter, "config/crd/groupsnapshot.storage.k8s.io_volumegroupsnapshotcontents.yaml", "dc148b9798e4aa08"},
	{snapshotter, "config/crd/groupsnapshot.storage.k8s.io_volumegroupsnapshots.yaml", "59abaccbe9e85a61"},
	{prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml", "8ce88c52c5120999"},
	{prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml", "1dae27b7189b5ce7"},
	{prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml", "98fd16c9ab79fba8"},
	{openShift, "security/v1/zz_generated.crd-manifests/0000_03_config-operator_01_securitycontextconstraints.crd.yaml", "caeeb85886a16888"},
	{credentials, "manifests/0000_03_cloud-credential-operator_01_crd.yaml", "5954c07289923b39"},
}

// ofOpenShift are those of OpenShift's own operators, which no bundle has. They are in the directory openshift.
var ofOpenShift = []definition{
	{openShift, "operator/v1/zz_generated.crd-manifests/0000_50_csi-driver_01_clustercsidrivers-Default.crd.yaml", "82c03053586ac355"},
	{openShift, "config/v1/zz_generated.crd-manifests/0000_00_cluster-version-operator_01_clusteroperators.crd.yaml", "8e1270b3736ba431"},
	{openShift, "config/v1/zz_generated.crd-manifests/0000_10_config-operator_01_infrastructures-Default.crd.yaml", "75a8ba8a6e1d0d6e"},
}

func main() {
	dir := flag.String("dir", "", "directory to write")
	flag.Parse()
	if err := run(*dir); err != nil {
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

func run(dir string) error {
	for below, files := range map[string][]definition{"": definitions, "openshift": ofOpenShift} {
		to := filepath.Join(dir, below)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		for _, d := range files {
			if err := copyFile(d.module, d.file, d.sum, filepath.Join(to, path.Base(d.file))); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyFile copies a file of a module that has the given sum.
func copyFile(module, file, sum, to string) error {
	text, err := exec.Command("go", "mod", "download", "-json", module).Output()
	var at struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(text, &at); jsonErr != nil || at.Dir == "" {
		return fmt.Errorf("go mod download %s: %w: %s", module, err, at.Error)
	}
	content, err := os.ReadFile(filepath.Join(at.Dir, filepath.FromSlash(file)))
	if err != nil {
		return err
	}
	hash := sha256.Sum256(content)
	if got := hex.EncodeToString(hash[:]); got[:len(sum)] != sum || sum == "" {
		return fmt.Errorf("%s: %s has the sum %s, and not %s", module, file, got[:16], sum)
	}
	return os.WriteFile(to, content, 0o644)
}
