# The driver's container image, made without a container engine or a registry.

IMAGE ?= ghcr.io/cinder-csi/cinder-csi-driver:$(VERSION)

.PHONY: image
image: build ## the driver's OCI image as bin/cinder-csi-image.tar (Debian; its tools are tried once)
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" \
	  go run ./internal/ociimage/cmd/oci-image -driver bin/cinder-csi-driver -name '$(IMAGE)' -output bin/cinder-csi-image.tar
