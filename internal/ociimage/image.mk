# The container images of driver and generator, made without a container engine or a registry.

IMAGE ?= ghcr.io/cinder-csi/cinder-csi-driver:$(VERSION)
GENERATOR_IMAGE ?= ghcr.io/cinder-csi/cinder-csi-generator:$(VERSION)
# One image index for all of them: IMAGE_ARCHS="amd64 arm64". The programs of another architecture than this machine's are not run.
IMAGE_ARCHS ?= $(shell go env GOARCH)
comma := ,
empty :=
space := $(empty) $(empty)

.PHONY: image
image: $(IMAGE_ARCHS:%=bin/linux-%/cinder-csi-driver) ## the driver's OCI image as bin/cinder-csi-image.tar (Debian; its tools are run once; IMAGE_ARCHS="amd64 arm64" makes one for both)
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" \
	  go run ./internal/ociimage/cmd/oci-image -driver '$(subst $(space),$(comma),$^)' -name '$(IMAGE)' -output bin/cinder-csi-image.tar

.PHONY: image-generator
image-generator: $(IMAGE_ARCHS:%=bin/linux-%/cinder-csi-generator) ## the generator's OCI image as bin/cinder-csi-generator-image.tar (program and CA certificates, user 65532)
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" \
	  go run ./internal/ociimage/cmd/oci-image -generator '$(subst $(space),$(comma),$^)' -name '$(GENERATOR_IMAGE)' -output bin/cinder-csi-generator-image.tar

# go decides what must be built again.
.PHONY: FORCE
FORCE:
bin/linux-%/cinder-csi-driver: FORCE
	CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -trimpath -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o $@ ./cmd/cinder-csi-driver
bin/linux-%/cinder-csi-generator: FORCE
	CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -trimpath -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o $@ ./cmd/cinder-csi-generator
