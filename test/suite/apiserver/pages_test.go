//go:build apiserver

package apiserver

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// TestTheCommandsOfThePagesRun runs the kubectl commands of pages, in order, and creates the objects that they show. A pod never starts here, so
// what waits for one is left out.
func TestTheCommandsOfThePagesRun(t *testing.T) {
	s := startServer(t)
	bundle := filepath.Join("deploy", "cinder-csi")
	s.run(t, "cinder-csi-generator", "generate", "--simulated", "--target", "vanilla", "--format", "kustomize", "--output-dir", bundle)
	testenv.Must(t, os.CopyFS(s.Path("examples"), os.DirFS(filepath.Join(s.Repo, "examples"))))
	// The tutorial has them from programs that do not run here, and deletes them at its end.
	s.Write(t, "driver-clouds.yaml", "clouds: {}\n")
	s.Write(t, "rules.json", "[]\n")
	t.Run("first volume", func(t *testing.T) { s.page(t, "tutorial/first-volume.md") })
	s.run(t, "kubectl", "apply", "--server-side", "-k", bundle)
	t.Run("zones", func(t *testing.T) { s.page(t, "explanation/topology.md") })
	t.Run("use volumes", func(t *testing.T) {
		s.create(t, "how-to/use-volumes.md")
		documents := s.documents(t, "how-to/use-volumes.md")
		s.Write(t, "snapshot.yaml", documents[slices.IndexFunc(documents, func(d string) bool { return strings.Contains(d, "kind: VolumeSnapshot\n") })])
		s.run(t, "kubectl", "apply", "-f", "examples/workloads/claim-and-pod.yaml")
		// The API server lets nobody raise the size of a claim that is not bound.
		s.run(t, "kubectl", "patch", "persistentvolumeclaim", "data", "--subresource=status", "-p", `{"status": {"phase": "Bound"}}`)
		s.page(t, "how-to/use-volumes.md")
		s.run(t, "kubectl", "delete", "statefulset/db", "pod/raw", "persistentvolumeclaim/raw")
	})
	t.Run("copy data", func(t *testing.T) {
		s.create(t, "how-to/copy-data.md")
		s.keepTheName(t)
	})
	t.Run("backup and restore", func(t *testing.T) {
		documents := slices.Concat(s.documents(t, "how-to/backup-and-restore.md"), s.documents(t, "how-to/import-a-volume.md"))
		s.Write(t, "snapshot.yaml", documents[0])
		for _, document := range documents {
			s.Write(t, "object.yaml", document)
			s.run(t, "kubectl", "apply", "-f", "object.yaml")
		}
		s.page(t, "how-to/backup-and-restore.md")
		s.page(t, "how-to/import-a-volume.md")
	})
	t.Run("volume types", func(t *testing.T) { s.create(t, "how-to/volume-types.md") })
	t.Run("several clouds", func(t *testing.T) {
		s.create(t, "how-to/several-clouds.md")
		s.secondBundle(t)
	})
	t.Run("change the type", func(t *testing.T) {
		s.create(t, "how-to/change-volume-type.md")
		s.run(t, "kubectl", "apply", "-f", "examples/workloads/claim-and-pod.yaml")
		s.page(t, "how-to/change-volume-type.md")
	})
	t.Run("upgrade", func(t *testing.T) {
		for _, name := range []string{"old", "new"} {
			testenv.Must(t, os.Symlink(s.Path(bundle), s.Path(name)))
		}
		s.page(t, "how-to/upgrade.md")
	})
	t.Run("check for drift", func(t *testing.T) {
		s.Write(t, "distribution.yaml", "spec: {driftCheck: {schedule: '@daily'}}\n")
		s.run(t, "cinder-csi-generator", "generate", "--simulated", "--target", "vanilla", "--format", "kustomize", "--output-dir", bundle, "--config", "distribution.yaml")
		s.run(t, "kubectl", "apply", "--server-side", "-k", bundle)
		s.Write(t, "reader.yaml", "clouds: {}\n")
		s.page(t, "how-to/check-for-drift.md")
		if jobs := s.run(t, "kubectl", "get", "jobs", "--namespace=cinder-csi", "--selector=app.kubernetes.io/component=drift-check", "-o", "name"); !strings.Contains(jobs, "drift-now") {
			t.Errorf("want the job of the page, found by its label, got %q", jobs)
		}
	})
	t.Run("rotate credentials", func(t *testing.T) {
		s.run(t, "kubectl", "create", "secret", "generic", "cinder-csi-credentials", "--namespace=cinder-csi", "--from-literal=clouds.yaml=clouds: {}")
		s.Write(t, "driver-clouds.yaml", "clouds: {openstack: {}}\n")
		s.page(t, "how-to/rotate-credentials.md")
		if got, want := s.run(t, "kubectl", "get", "secret", "cinder-csi-credentials", "--namespace=cinder-csi", "-o", `jsonpath={.data.clouds\.yaml}`), base64.StdEncoding.EncodeToString([]byte("clouds: {openstack: {}}\n")); got != want {
			t.Errorf("want the new credentials in the Secret, got %q", got)
		}
		s.run(t, "kubectl", "delete", "secret", "cinder-csi-credentials", "--namespace=cinder-csi")
	})
	t.Run("uninstall", func(t *testing.T) {
		s.run(t, "kubectl", "create", "secret", "generic", "cinder-csi-credentials", "--namespace=cinder-csi")
		s.run(t, "kubectl", "patch", "persistentvolume", "imported", "-p", `{"spec": {"persistentVolumeReclaimPolicy": "Delete"}}`)
		s.page(t, "how-to/uninstall.md")
		if policy := s.run(t, "kubectl", "get", "persistentvolume", "imported", "-o", "jsonpath={.spec.persistentVolumeReclaimPolicy}"); policy != "Retain" {
			t.Errorf("want the reclaim policy Retain after the commands of the page, got %q", policy)
		}
	})
}

func (s *server) text(t *testing.T, page string) string {
	t.Helper()
	return testfile.Text(t, filepath.Join(s.Repo, "docs", page))
}

// waiting are commands that wait for a pod.
var waiting = []string{"rollout", "wait", "logs", "exec"}

// page runs the blocks of commands of a page, without the lines of other programs and those that wait for pods.
func (s *server) page(t *testing.T, page string) {
	t.Helper()
	for _, block := range readme.Fenced(s.text(t, page), "sh") {
		var lines []string
		for _, line := range strings.Split(block, "\n") {
			words := strings.Fields(line)
			foreign := len(words) > 0 && slices.ContainsFunc([]string{"make", "skopeo", "openstack", "helm", "git", "bin/"}, func(program string) bool {
				return strings.HasPrefix(words[0], program)
			})
			// The snapshot CRDs are there already.
			remote := strings.Contains(line, "https://")
			if !foreign && !remote && !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(waiting, word) }) {
				lines = append(lines, line)
			}
		}
		if script := strings.TrimSpace(strings.Join(lines, "\n")); script != "" {
			t.Logf("%s: %s\n%s", page, script, s.shell(t, script))
		}
	}
}

// documents are the YAML documents of a page that are objects of Kubernetes.
func (s *server) documents(t *testing.T, page string) []string {
	t.Helper()
	var all []string
	for _, block := range readme.Fenced(s.text(t, page), "yaml") {
		for _, document := range strings.Split(block, "\n---\n") {
			if strings.HasPrefix(document, "apiVersion:") && !strings.Contains(document, "\nkind: Distribution\n") {
				all = append(all, document)
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s shows no object", page)
	}
	return all
}

// keepTheName gives the new volume of a StatefulSet the name of the old one, by the commands of the page. The data of both must stay.
func (s *server) keepTheName(t *testing.T) {
	t.Helper()
	const volumes = `{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "old"}, "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
 "claimRef": {"namespace": "default", "name": "data-db-0"}, "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "a"}, "persistentVolumeReclaimPolicy": "Delete"}},
{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "new"}, "spec": {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"],
 "claimRef": {"namespace": "default", "name": "data-new"}, "csi": {"driver": "cinder.csi.openstack.org", "volumeHandle": "b"}, "persistentVolumeReclaimPolicy": "Delete"}}]}`
	s.Write(t, "volumes.json", volumes)
	s.run(t, "kubectl", "apply", "-f", "volumes.json", "-f", "examples/workloads/statefulset.yaml")
	names := strings.NewReplacer("OLD", "old", "NEW", "new")
	documents := s.documents(t, "how-to/copy-data.md")
	claims := strings.Join([]string{documents[0], strings.Replace(documents[0], "name: data-new", "name: data-db-0", 1)}, "\n---\n")
	s.Write(t, "object.yaml", claims)
	s.run(t, "kubectl", "apply", "-f", "object.yaml")
	blocks := testenv.Value(readme.Blocks(s.text(t, "how-to/copy-data.md"), "Keep the name of the claim"))(t)
	s.shell(t, names.Replace(blocks[0]))
	s.Write(t, "object.yaml", names.Replace(documents[len(documents)-1]))
	s.run(t, "kubectl", "apply", "-f", "object.yaml")
	for name, want := range map[string]string{"old": "Retain data-db-0", "new": "Retain "} {
		if got := s.run(t, "kubectl", "get", "persistentvolume", name, "-o", "jsonpath={.spec.persistentVolumeReclaimPolicy} {.spec.claimRef.name}"); got != want {
			t.Errorf("volume %s: want %q, got %q", name, want, got)
		}
	}
	s.run(t, "kubectl", "delete", "statefulset/db", "persistentvolumeclaim/data-db-0", "persistentvolume/old", "persistentvolume/new")
}

// secondBundle applies a bundle with the keys of the page beside the first one, and deletes it. No object of the first may change.
func (s *server) secondBundle(t *testing.T) {
	t.Helper()
	blocks := readme.Fenced(s.text(t, "how-to/several-clouds.md"), "yaml")
	i := slices.IndexFunc(blocks, func(block string) bool { return strings.Contains(block, "\nkind: Distribution\n") })
	if i < 0 {
		t.Fatal("the page has no configuration of a second bundle")
	}
	s.Write(t, "south.yaml", blocks[i])
	before := s.state(t)
	s.run(t, "cinder-csi-generator", "generate", "--simulated", "--target", "vanilla", "--format", "kustomize", "--output-dir", "south", "--config", "south.yaml")
	s.run(t, "kubectl", "apply", "--server-side", "-k", "south")
	both := s.state(t)
	s.run(t, "kubectl", "delete", "-k", "south")
	after := s.state(t)
	if own := only(both, before); len(own) < 20 {
		t.Errorf("want the objects of a whole bundle, got %q", own)
	}
	for _, name := range slices.Concat(changed(before, both), changed(before, after), only(before, after)) {
		t.Errorf("the second bundle touched %s of the first", name)
	}
	if left := only(after, before); len(left) > 0 {
		t.Errorf("%q are left of the second bundle", left)
	}
}

func (s *server) create(t *testing.T, page string) {
	t.Helper()
	for _, document := range s.documents(t, page) {
		s.Write(t, "object.yaml", document)
		s.run(t, "kubectl", "apply", "--dry-run=server", "-f", "object.yaml")
	}
}
