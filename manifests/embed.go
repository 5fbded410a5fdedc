// Package manifests has what each target deploys by default, as plain YAML: charts/cinder-csi rendered. `make update` writes the files of vanilla,
// standalone and hypershift.
package manifests

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"
)

// Files are the base of vanilla.
//
//go:embed vanilla
var Files embed.FS

// Read decodes an object of the base of vanilla.
func Read(kind, name string, into any) error {
	names, err := fs.Glob(Files, "vanilla/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range names {
		text, err := Files.ReadFile(file)
		if err != nil {
			return err
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var o struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(document), &o); err != nil {
				return fmt.Errorf("manifests/%s: %w", file, err)
			}
			if o.Kind == kind && o.Metadata.Name == name {
				return yaml.Unmarshal([]byte(document), into)
			}
		}
	}
	return fmt.Errorf("manifests/vanilla has no %s %s", kind, name)
}
