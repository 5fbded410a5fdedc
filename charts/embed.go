// Package charts is the Helm chart: the one form of what is deployed that people write. manifests/ and every bundle are this chart rendered.
package charts

import (
	"embed"
	"fmt"

	"sigs.k8s.io/yaml"
)

// Files are the chart's, below cinder-csi/.
//
//go:embed all:cinder-csi
var Files embed.FS

// Image is an image of the values. A registry that is empty has no default.
type Image struct{ Registry, Repository, Tag, Digest string }

// Images are the images of the values, by role and container.
func Images() (map[string]map[string]Image, error) {
	var values struct {
		Images struct{ Controller, Node, DriftCheck map[string]Image }
	}
	err := Values(&values)
	return map[string]map[string]Image{"controller": values.Images.Controller, "node": values.Images.Node, "driftcheck": values.Images.DriftCheck}, err
}

// Values decodes values.yaml.
func Values(into any) error {
	const name = "cinder-csi/values.yaml"
	text, err := Files.ReadFile(name)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("charts/%s: %w", name, err)
	}
	return nil
}
