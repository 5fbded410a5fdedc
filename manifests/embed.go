// Package manifests is what gets deployed, as plain YAML: a Kustomize base and one component per feature and plane.
package manifests

import "embed"

// Files are base/ and components/.
//
//go:embed all:base all:components
var Files embed.FS
