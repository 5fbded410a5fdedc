# Images and releases. Nothing here publishes outside of this machine.

IMAGE ?= registry.invalid/cinder-csi/cinder-csi-driver:$(VERSION)
GENERATOR_IMAGE ?= registry.invalid/cinder-csi/cinder-csi-generator:$(VERSION)
# One image index for all of them: IMAGE_ARCHS="amd64 arm64". The programs of another architecture than this machine's are not run.
IMAGE_ARCHS ?= $(shell go env GOARCH)
comma := ,
empty :=
space := $(empty) $(empty)

##@ Image
.PHONY: image image-driver image-generator

image: $(addprefix image-,$(or $(PROGRAM),driver)) ## the OCI image of the driver in bin/ (PROGRAM=generator: of the generator; IMAGE_ARCHS="amd64 arm64")

image-driver: $(IMAGE_ARCHS:%=bin/linux-%/cinder-csi-driver) #: the driver's OCI image as bin/cinder-csi-image.tar (Debian; its tools are run once; IMAGE_ARCHS="amd64 arm64" makes one for both)
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" \
	  go run ./tools/image/cmd/oci-image -driver '$(subst $(space),$(comma),$^)' -debian-sources '$(DEBIAN_SOURCES)' -name '$(IMAGE)' -output bin/cinder-csi-image.tar

image-generator: $(IMAGE_ARCHS:%=bin/linux-%/cinder-csi-generator) #: the generator's OCI image as bin/cinder-csi-generator-image.tar (program and CA certificates, user 65532)
	SOURCE_DATE_EPOCH="$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)}" \
	  go run ./tools/image/cmd/oci-image -generator '$(subst $(space),$(comma),$^)' -debian-sources '$(DEBIAN_SOURCES)' -name '$(GENERATOR_IMAGE)' -output bin/cinder-csi-generator-image.tar

# go decides what must be built again.
.PHONY: FORCE
FORCE:
bin/linux-%/cinder-csi-driver: FORCE
	GOOS=linux GOARCH=$* go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/cinder-csi-driver
bin/linux-%/cinder-csi-generator: FORCE
	GOOS=linux GOARCH=$* go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/cinder-csi-generator

# Without VERSION=vMAJOR.MINOR.PATCH on the command line, the version of the chart.
RELEASE_VERSION = $(if $(filter command,$(firstword $(origin VERSION))),$(VERSION))
# DEBIAN_SOURCES=tools/release/debian.sources takes packages of one fixed day. Without a file, they are those of this machine's apt sources.
DEBIAN_SOURCES ?= tools/image/debian13.sources
# For the provenance: the pipeline that builds, and the repository of the commit. Without them, a person's machine and the project.
RELEASE_BUILDER ?=
RELEASE_HOME ?=
# release-check leaves the files of its first build in this directory.
KEEP ?=
# Built like the programs of the release, so that go compiles the packages of both once.
RELEASE := go run ./tools/release/cmd/release -version '$(RELEASE_VERSION)' -debian-sources '$(DEBIAN_SOURCES)' \
  -builder '$(RELEASE_BUILDER)' -home '$(RELEASE_HOME)'

##@ Release
.PHONY: release-dry-run release-check release-rehearsal
# CLUSTER=1 goes on with the cluster bed (make cluster-up), for which REHEARSAL must name a directory.
CLUSTER ?=

release-dry-run: ## the files of a release in dist/, for both architectures, not signed, not published (VERSION=v0.1.0)
	$(RELEASE) -output dist

release-check: ## build the release of this commit twice, in directories and time zones that differ, and compare
	VERSION='$(RELEASE_VERSION)' DEBIAN_SOURCES='$(DEBIAN_SOURCES)' RELEASE_BUILDER='$(RELEASE_BUILDER)' RELEASE_HOME='$(RELEASE_HOME)' KEEP='$(KEEP)' tools/release/check.sh

release-rehearsal: ## release this commit and its next patch to a registry on this machine (REHEARSAL=DIR, CLUSTER=1)
	$(if $(CLUSTER),$(if $(REHEARSAL),,$(error CLUSTER=1 needs REHEARSAL=DIR)))
	REHEARSAL='$(REHEARSAL)' DEBIAN_SOURCES='$(DEBIAN_SOURCES)' tools/release/rehearse.sh
	$(if $(CLUSTER),REHEARSAL='$(REHEARSAL)' tools/release/rehearse-cluster.sh)
