package publish

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/tools/release"
)

// Assets says what a person downloads, and from where.
type Assets struct {
	Dist      string     // the built release
	Output    string     // a new directory: one file for each download, without directories, as a page of downloads has them
	Version   string     // vMAJOR.MINOR.PATCH
	Home      string     // address of the project's repository
	Downloads string     // address of the directory with the files
	Pushed    []Artefact // what Push returned
}

// Write lays out the downloads of a release: archives, chart, SBOMs, provenance, krew manifest, names of the images, checksums. The notes of
// the release stand beside the directory.
func (a Assets) Write() error {
	if err := os.Mkdir(a.Output, 0o755); err != nil {
		return err
	}
	for _, pattern := range []string{"archives/*", "chart/*", "provenance.intoto.json"} {
		if err := a.copy(pattern); err != nil {
			return err
		}
	}
	for _, step := range []func() error{a.sboms, a.krew, a.images, a.checksums, a.predicate, a.notes} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (a Assets) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(a.Output, name), content, 0o644)
}

func (a Assets) copy(pattern string) error {
	found, err := filepath.Glob(filepath.Join(a.Dist, pattern))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("%s has no %s: build the release first", a.Dist, pattern)
	}
	for _, file := range found {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := a.write(filepath.Base(file), content); err != nil {
			return err
		}
	}
	return nil
}

// sboms packs all SBOMs into one archive, because there is one for each program, image and platform.
func (a Assets) sboms() error {
	found, err := filepath.Glob(filepath.Join(a.Dist, "sbom", "*.json"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("%s has no SBOM: build the release first", a.Dist)
	}
	var packed bytes.Buffer
	compressed := gzip.NewWriter(&packed)
	to := tar.NewWriter(compressed)
	for _, file := range found {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		// Without a time: two releases of one commit are equal.
		if err := to.WriteHeader(&tar.Header{Name: "sbom/" + filepath.Base(file), Mode: 0o644, Size: int64(len(content)), ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := to.Write(content); err != nil {
			return err
		}
	}
	if err := errors.Join(to.Close(), compressed.Close()); err != nil {
		return err
	}
	return a.write("sbom-"+a.Version+".tar.gz", packed.Bytes())
}

// krewPlatforms are those of the plugin's archives.
var krewPlatforms = []struct{ os, arch string }{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

// krew writes the manifest of the kubectl plugin: `kubectl krew install --manifest` takes it.
func (a Assets) krew() error {
	type object = map[string]any
	var platforms []object
	for _, p := range krewPlatforms {
		file := "kubectl-cinder-" + a.Version + "-" + p.os + "-" + p.arch + ".tar.gz"
		content, err := os.ReadFile(filepath.Join(a.Output, file))
		if err != nil {
			return err
		}
		platforms = append(platforms, object{
			"selector": object{"matchLabels": object{"os": p.os, "arch": p.arch}},
			"uri":      a.Downloads + "/" + file,
			"sha256":   fmt.Sprintf("%x", sha256.Sum256(content)),
			"bin":      "kubectl-cinder",
			"files":    []object{{"from": "kubectl-cinder", "to": "."}, {"from": "LICENSE", "to": "."}},
		})
	}
	content, err := yaml.Marshal(object{
		"apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
		"kind":       "Plugin",
		"metadata":   object{"name": "cinder"},
		"spec": object{
			"version":          a.Version,
			"homepage":         a.Home,
			"shortDescription": "Find out why a Cinder volume does not work",
			"description":      "Follows a claim from its class to the disk of the node, and says which step it waits for, why, and what to do.\nIt only reads.\n",
			"platforms":        platforms,
		},
	})
	if err != nil {
		return err
	}
	return a.write("cinder.yaml", content)
}

// images writes what was pushed, with digests: for people, and for signing and checking.
func (a Assets) images() error {
	content, err := json.MarshalIndent(a.Pushed, "", "  ")
	if err != nil {
		return err
	}
	return a.write("artefacts.json", append(content, '\n'))
}

func (a Assets) checksums() error {
	var sums strings.Builder
	err := fs.WalkDir(os.DirFS(a.Output), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(a.Output, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), name)
		return nil
	})
	if err != nil {
		return err
	}
	return a.write("SHA256SUMS", []byte(sums.String()))
}

// predicate writes the provenance without its subjects beside the downloads: an attestation of an image has the image as its subject.
func (a Assets) predicate() error {
	content, err := os.ReadFile(filepath.Join(a.Dist, "provenance.intoto.json"))
	if err != nil {
		return err
	}
	var statement struct{ Predicate json.RawMessage }
	if err := json.Unmarshal(content, &statement); err != nil {
		return err
	}
	return os.WriteFile(a.Output+".predicate.json", statement.Predicate, 0o644)
}

// notes writes the text of the release: the changelog's section, then what was pushed.
func (a Assets) notes() error {
	text, err := release.Changes(".", a.Version)
	if err != nil {
		return err
	}
	var notes strings.Builder
	fmt.Fprintf(&notes, "%s\n## Images and chart\n\n", text)
	for _, p := range a.Pushed {
		if p.Platform == "" {
			fmt.Fprintf(&notes, "- %s `%s`: `%s`\n", p.Kind, p.Tag, p.Ref)
		}
	}
	fmt.Fprintf(&notes, "\n[How to check signatures and checksums](%s/blob/%s/docs/how-to/use-a-release.md)\n", a.Home, a.Version)
	return os.WriteFile(a.Output+".notes.md", []byte(notes.String()), 0o644)
}
