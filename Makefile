# cinder-csi: a Cinder CSI driver that configures itself from the cloud it runs on.
# `make help` lists the targets; the comment after ## is the help of a target, and ##@ begins a group. This file builds and checks. The files that it
# includes at its end have the rest: test/suite/suite.mk proves, test/bed/bed.mk starts real systems, test/kit/kit.mk has the tools of tests,
# tools/tools.mk makes images and releases.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
# For everything that is shipped. Without it, gRPC links html/template, whose calls of methods by name make the linker keep every method:
# 3 MiB of the driver.
TAGS := grpcnotrace
PROGRAMS := cinder-csi-driver cinder-csi-generator kubectl-cinder openstack-sim
TOOL := go tool -modfile=.ci/tools.mod
# Where the real cloud of `make openstack-up` lives.
OPENSTACK_BED ?= $(or $(TMPDIR),/tmp)/openstack-bed
export OPENSTACK_BED
# By find, not by git: git lists nothing in an archive or in a checkout of another user.
GOFILES = $(shell find . -name '*.go' -not -path './bin/*')
SHFILES = $(shell find . -name '*.sh' -not -path './bin/*')

.PHONY: help

help: ## list the targets
	@awk -F ':.*## ' '/^##@ / {print "\n" substr($$0, 5)} /^[a-z][a-z0-9-]*:.*## / {printf "  %-24s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Build
.PHONY: build deps clean

build: ## build the four programs into bin/
	CGO_ENABLED=0 go build -trimpath -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/ $(PROGRAMS:%=./cmd/%)

deps: ## the modules in each program
	@for p in $(PROGRAMS); do echo "$$p:"; go list -deps -f '{{with .Module}}  {{.Path}} {{.Version}}{{end}}' ./cmd/$$p | sort -u; done

clean: ## remove built files
	rm -rf bin dist

# The build tags of tests; a test compares them with the files.
TEST_TAGS := apiserver,cluster,gitops,hypershift,monitoring,openstack,partial,render,restart,scale,soak,strict,tls,vm

##@ Check a change
.PHONY: test-fast test lint prose fuzz fuzz-driver vulncheck

# Left out: the suites that play faults, attacks, histories and kills, the benchmark, and the check of every rendered object. -short leaves
# out what needs root (real devices, file systems, mounts) and some tests of a second and more. Without cgo, the test binaries link in 60%
# of the time and need no C compiler. GOGC=400 saves the linker and the tests garbage collections, for memory.
SLOW_PACKAGES := generator/verify test/suite/attack test/suite/bench test/suite/cloudparity test/suite/errortable test/suite/histories test/suite/nodekills test/suite/partial test/suite/soak
test-fast: ## the tests of most packages in under a minute: without root, race detector and the slow suites (SLOW_PACKAGES)
	GOGC=400 CGO_ENABLED=0 go test -short $$(go list ./... $(SLOW_PACKAGES:%=| grep -v /%))

# Without the race detector, which takes ten times the processor time. The first run in one goroutine, in the product and mostly in the tests, so
# the detector has nothing to find there: a test holds them to that. It sees the requests of the generator in generator/inspect, and its commands
# in test/suite/attack/hostilecloud. The two suites play thousands of faults. The detector sees the same code in test/suite/driver and
# test/suite/histories. test-errors runs errortable, in full.
NO_RACE := generator/cli generator/verify charts docs examples generator/bundle generator/field generator/guard generator/plan generator/report \
  generator/v1alpha1 generator/worktree overlays test test/kit/recipes test/suite/attack/pullrequest tools/imports \
  test/suite/errortable test/suite/partial
test: test-tools ## all tests without a cloud, what starts goroutines with the race detector, and csi-sanity; tests of real devices need root
	go run ./test/kit/gate -- -race -timeout 40m $$(go list ./... | grep -vxF $(NO_RACE:%=-e github.com/cinder-csi/cinder-csi/%))
	go run ./test/kit/gate -- -timeout 40m $(patsubst %,./%,$(filter-out test/suite/errortable,$(NO_RACE)))
	cd test/suite/examples && go test ./...
	$(MAKE) test-errors test-sanity

# Vet also reads every dependency. That takes minutes for the three modules below test/ that build Kubernetes or kubectl, so they are not vetted here
# (gofumpt reads their files). test/kit/strict is vetted where test/kit/kit.mk builds it, test/suite/external/e2e by test/suite/external/build.sh.
# test/kit/render is not: its only code is one call of kubectl, which the compiler checks.
lint: prose ## format, vet of every build tag, staticcheck, texts and names, shell scripts, module files
	@unformatted=$$($(TOOL) gofumpt -l $(GOFILES)); [ -z "$$unformatted" ] || { echo "not gofumpt's format: $$unformatted" >&2; exit 1; }
	go vet ./...
	go vet -tags '$(TEST_TAGS)' ./...
	$(TOOL) staticcheck ./...
	$(TOOL) staticcheck -tags '$(TEST_TAGS)' ./...
	cd test/suite/sanity && go vet ./...
	cd test/suite/html && go vet ./...
	cd test/suite/examples && go vet -tags crds ./...
	cd test/bed/cluster/programs && go vet ./...
	shellcheck $(SHFILES) .ci/run
	go mod tidy -diff
	go mod verify

prose: ## texts and names: rejected words (tools/prose/words.txt) and sentences of more than 25 words; findings may only become fewer
	go run ./tools/prose/cmd/prose

fuzz: ## each fuzz target for FUZZTIME (10s)
	@go list ./... | while read -r pkg; do \
	  for f in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; go test "$$pkg" -run '^$$' -fuzz "^$$f\$$" -fuzztime "$${FUZZTIME:-10s}" -parallel 2; \
	  done; done

# TARGET=N: N inputs take about five seconds. A number, not a time, since go test -fuzz may fail with "context deadline exceeded" when its time ends.
# Input of the driver: cloud.conf, parameters, templates, annotations and tokens; on the node, data of the kernel, the metadata and the disks.
FUZZ_DRIVER := internal/cloudconf:FuzzRoundTrip=200000 internal/cloudconf:FuzzValue=160000 driver/config:FuzzParseSettings=100000 \
  driver/contract:FuzzParseStorageClass=120000 driver/contract:FuzzParseSnapshotClass=150000 driver/contract:FuzzParseAttributesClass=150000 \
  driver/contract:FuzzTemplate=250000 driver/contract:FuzzHintsOfClaim=200000 driver/contract:FuzzMountFlags=150000 driver/controller:FuzzToken=40000 \
  driver/openstack:FuzzCinderReplies=3000 driver/openstack:FuzzNovaReplies=5000 \
  driver/host/mount:FuzzParseMountInfo=90000 driver/host/disk:FuzzSysfsTree=1400 driver/host/fs:FuzzSuperblocks=70000 \
  driver/host/metadata:FuzzParseMetadata=40000 driver/host/metadata:FuzzConfigDrives=50000 driver/host/metadata:FuzzDirectories=40000

# Input of the generator: clouds.yaml and its profiles, configuration and inventory, bundles of a checkout.
# 3,000 pairs of clouds and configurations in two minutes: make fuzz-driver FUZZ_DRIVER= FUZZ_GENERATOR=generator/guard:FuzzPairsOfCloudsAndConfigurations=3000
FUZZ_GENERATOR := internal/cloud:FuzzCloudsYAML=3500 internal/cloud:FuzzProfiles=20000 internal/printable:FuzzEscape=200000 \
  generator/guard:FuzzPairsOfCloudsAndConfigurations=120 generator/verify:FuzzGenerate=120 generator/verify:FuzzBundle=80

fuzz-driver: ## each fuzz target for the input of driver and generator, some five seconds each; FUZZ_FACTOR=100 for longer
	@set -e; for target in $(FUZZ_DRIVER) $(FUZZ_GENERATOR); do \
	  name=$${target%=*}; echo "$$name"; \
	  go test "./$${name%:*}" -run '^$$' -fuzz "^$${name#*:}\$$" -fuzztime "$$(($${target#*=} * $${FUZZ_FACTOR:-1}))x" -fuzzminimizetime 10x -parallel 2; done

vulncheck: ## known vulnerabilities that the programs reach (govulncheck; it needs the internet: https://vuln.go.dev, or GOVULNDB)
	$(TOOL) govulncheck $${GOVULNDB:+-db $$GOVULNDB} ./cmd/...

##@ Write files that tests compare with
.PHONY: update format prose-update sidecar-flags

update: build ## update the files that tests compare with: goldens and overlays/
	go test ./charts -run "^TestTheChartHasTheSettingsOfTheTable$$" -update
	go test ./charts ./generator/cli ./overlays ./docs -update

format: ## write every Go file in gofumpt's format
	$(TOOL) gofumpt -w $(GOFILES)

prose-update: ## write the baseline of the prose check, after texts were rewritten
	go run ./tools/prose/cmd/prose -update

sidecar-flags: ## read the flags of the CSI sidecars from their modules, after an image of manifests/components/images changed
	flags=$$(go run ./generator/verify/sidecarflags) && printf '%s\n' "$$flags" >generator/verify/sidecars.yaml

include test/bed/bed.mk
include test/kit/kit.mk
include test/suite/suite.mk
include tools/tools.mk
