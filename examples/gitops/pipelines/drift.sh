#!/bin/sh
# Is the bundle in Git still what the cloud and the configuration ask for? Prints the changes as Markdown.
# Exit code 0: yes. 2: no; run generate and propose what it writes. 1: the cloud did not answer, which is not drift.
# The variables OS_* name the cloud and hold the credential of a reader. So run it from the examples: who proposes a change could change a copy. With
# OS_CLOUD set OS_CLIENT_CONFIG_FILE, too, or a clouds.yaml of the checkout counts.
set -eu
cluster=${1:?the directory of the cluster, such as prod}
exec cinder-csi-generator generate --config "$cluster/distribution.yaml" --target vanilla --format kustomize \
	--output-dir "$cluster/cinder-csi" --check -o markdown
