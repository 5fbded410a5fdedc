#!/usr/bin/env bash
# A pipeline's step: is the bundle in Git still what the cloud asks for? 0: yes. 2: the differences are printed; open a change with
# what `generate` writes. 1: the cloud could not be asked, which is no drift. Needs a clouds.yaml with the rights of a reader.
set -euo pipefail
exec cinder-csi-generator generate --os-cloud "${OS_CLOUD:?the entry in clouds.yaml}" --config prod/distribution.yaml \
	--target vanilla --format kustomize --output-dir prod/cinder-csi --diff
