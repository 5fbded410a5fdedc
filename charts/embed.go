// Package charts is the Helm chart: the twin of package manifests, proven to render the same objects.
package charts

import "embed"

// Files are the chart's, below cinder-csi/.
//
//go:embed all:cinder-csi
var Files embed.FS
