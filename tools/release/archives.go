package release

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// archive is the name of a program's archive. The version stands in it, because people keep archives of several versions.
func (p program) archive(version string) string {
	return "archives/" + p.name + "-" + version + "-" + p.String() + ".tar.gz"
}

// examples are the files of this repository that the commands of the tutorial, of docs/how-to/use-volumes.md and of docs/how-to/review-a-deployment.md name. The last
// page also needs the pipelines and their credential. The archive of the generator has them under the same paths, so that a user of a release needs no
// checkout.
var examples = []string{
	"examples/distribution/minimal.yaml", "examples/workloads/claim-and-pod.yaml", "examples/workloads/statefulset.yaml", "examples/workloads/raw-block.yaml",
	"examples/gitops/pipelines/drift.sh", "examples/gitops/pipelines/github-actions.yaml", "examples/gitops/pipelines/gitlab-ci.yml",
	"examples/terraform/application-credentials.tf",
}

// packArchives writes an archive for each program: the program under its own name, the licences, and its manual pages and completions.
// Krew takes archives only, and refuses one without a licence.
func (r *release) packArchives(context.Context) error {
	all, err := programs(".")
	if err != nil {
		return err
	}
	if err := r.copyExamples("."); err != nil {
		return err
	}
	for _, p := range all {
		files, err := r.companions(p.name)
		if err != nil {
			return err
		}
		content, err := r.pack(p, files)
		if err != nil {
			return fmt.Errorf("%s: %w", p.archive(r.Version), err)
		}
		if err := r.list(p.archive(r.Version), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) copyExamples(root string) error {
	for _, name := range examples {
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		if err := r.write(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// companions lists what belongs to a program, as files of the release.
func (r *release) companions(name string) ([]string, error) {
	all := []string{"LICENSE", "THIRD_PARTY_LICENSES.txt"}
	for _, pattern := range []string{"man/" + name + ".1", "man/" + name + "-*.1", "completions/*/" + name, "completions/*/_" + name, "completions/*/" + name + ".fish"} {
		found, err := filepath.Glob(r.path(pattern))
		if err != nil {
			return nil, err
		}
		for _, full := range found {
			file, err := filepath.Rel(r.dir, full)
			if err != nil {
				return nil, err
			}
			all = append(all, filepath.ToSlash(file))
		}
	}
	if name == "kubectl-cinder" {
		all = append(all, "completions/kubectl_complete-cinder")
	}
	if name == "cinder-csi-generator" {
		all = append(all, examples...)
	}
	slices.Sort(all)
	return all, nil
}

// pack writes one archive with the time of the release.
func (r *release) pack(p program, files []string) ([]byte, error) {
	var content bytes.Buffer
	compressed := gzip.NewWriter(&content)
	to := tar.NewWriter(compressed)
	add := func(name, file string, mode int64) error {
		data, err := os.ReadFile(r.path(file))
		if err != nil {
			return err
		}
		if err := to.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: r.time, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err = to.Write(data)
		return err
	}
	if err := add(p.name, p.file(), 0o755); err != nil {
		return nil, err
	}
	for _, file := range files {
		mode := int64(0o644)
		if strings.HasPrefix(filepath.Base(file), "kubectl_complete-") {
			mode = 0o755 // kubectl runs it
		}
		if err := add(file, file, mode); err != nil {
			return nil, err
		}
	}
	err := errors.Join(to.Close(), compressed.Close())
	return content.Bytes(), err
}
