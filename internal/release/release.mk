# The files of a release, built on this machine. Nothing here publishes.

# Without VERSION=vMAJOR.MINOR.PATCH on the command line, the version of the chart.
RELEASE_VERSION = $(if $(filter command,$(firstword $(origin VERSION))),$(VERSION))
# DEBIAN_SOURCES=internal/release/debian.sources takes packages of one fixed day instead of those of this machine's apt sources.
DEBIAN_SOURCES ?=
# Built like the programs of the release, so that go compiles the packages of both once.
RELEASE := CGO_ENABLED=0 go run -trimpath -tags '$(TAGS)' ./internal/release/cmd/release -version '$(RELEASE_VERSION)' -debian-sources '$(DEBIAN_SOURCES)'

.PHONY: release-dry-run release-check

release-dry-run: ## the files of a release in dist/, for both architectures, not signed, not published (Debian; VERSION=v0.1.0)
	$(RELEASE) -output dist

release-check: ## build the release of this commit twice, in directories and time zones that differ, and compare all checksums (minutes)
	VERSION='$(RELEASE_VERSION)' DEBIAN_SOURCES='$(DEBIAN_SOURCES)' internal/release/check.sh
