# cinder-csi: a Cinder CSI driver that configures itself from the cloud it runs on.
# `make help` lists the targets; the comment after ## is the help of a target, and ##@ begins a group. This file builds and checks. The files that it
# includes at its end have the rest: test/suite/suite.mk proves, test/bed/bed.mk starts real systems, test/kit/kit.mk has the tools of tests,
# tools/tools.mk makes images and releases. `make TARGET CASE=x` makes TARGET-x, whose comment after #: is printed by CASE=list; so do SUITE, WHAT and
# PROGRAM.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)
# For everything that is shipped. Without it, gRPC links html/template, whose calls of methods by name make the linker keep every method:
# 3 MiB of the driver.
TAGS := grpcnotrace
# One configuration for programs, tests and checks, so that go compiles each package once: without cgo, thus without a C compiler, and without paths of
# this machine. Tests are not vetted, since lint does that. The version comes from LDFLAGS: git may refuse a checkout of another user.
export CGO_ENABLED := 0
export GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath -tags=$(TAGS) -vet=off
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
	@awk -F ':.*## ' '/^##@ / {print "\n" substr($$0, 5)} /^[a-z][a-z0-9-]*:.*## / {printf "  %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The cases of a target: make test-cluster CASE=list.
LISTS := test-full-list test-openstack-list test-cloud-list test-apiserver-list test-cluster-list test-vm-list measure-list image-list
.PHONY: $(LISTS)
$(LISTS):
	@awk -F ':.*#: ' '/^$(@:list=)[a-z0-9-]*:.*#: / {printf "  %-12s %s\n", substr($$1, length("$(@:list=)") + 1), $$2}' $(MAKEFILE_LIST)

# What has no rule: a target of before, whose line in the table says what replaced it.
.DEFAULT:
	@awk -v old='$@' -F '\t' '$$1 == old {print "make " old " is now: " $$2; found = 1} \
	  END {if (!found) print "there is no target or file " old "; make help lists the targets, and CASE=list, SUITE=list or WHAT=list their cases"}' test/kit/old-targets.txt >&2; exit 2

##@ Build
.PHONY: build modules clean

build: ## build the four programs into bin/
	go build -ldflags '$(LDFLAGS)' -o bin/ $(PROGRAMS:%=./cmd/%)

# The module of the project, those below it that have a go.mod of their own, and the tools of lint and of releases.
MODULES := $(dir $(shell find . -name go.mod -not -path './bin/*'))
modules: ## download all modules, after which nothing needs a network (MODULES=". test/suite/examples": for make test)
	for module in $(MODULES); do (cd "$$module" && go mod download); done
	$(if $(filter file,$(origin MODULES)),go mod download -modfile=.ci/tools.mod && go mod download -modfile=tools/release/tools.mod)

clean: ## remove built files
	rm -rf bin dist

# The build tags of tests; a test compares them with the files.
TEST_TAGS := apiserver,cluster,gitops,hypershift,monitoring,openshift,openstack,partial,render,restart,scale,soak,strict,tls,vm

##@ Check a change
.PHONY: test test-root lint fuzz vulncheck

# The slowest packages first, so that no core waits for one of them at the end. GOGC=400 saves the linker and the tests garbage collections, for
# memory. COUNT=1 runs again what passed before: go keeps results, and does not know whether root had them. It holds each
# package to test/budget.txt. LOAD=2 keeps two cores busy beside the tests, which run in random order: a test that fails then depends on time or order.
SLOWEST := generator/verify generator/cli test/suite/driver test/suite/attack/tenant driver/host
test: test-tools ## all tests without a cloud, in short sizes (PACKAGES=./driver/attach, RUN=Detach, COUNT=1: nothing from the cache)
	$(if $(LOAD),for i in $$(seq $(LOAD)); do timeout 5h sh -c 'while :; do :; done' & done; trap 'kill $$(jobs -p)' EXIT; )\
	  GOGC=400 go run ./test/kit/gate $(if $(filter 1,$(COUNT)),-budget test/budget.txt) -- -timeout 90m $(if $(LOAD),-shuffle on) $(if $(COUNT),-count $(COUNT)) $(if $(RUN),-run '$(RUN)') $(or $(PACKAGES),$(SLOWEST:%=./%) ./...)
	$(if $(PACKAGES),,cd test/suite/examples && go test ./...)

# The packages whose tests call testenv.NeedRoot; a test compares. The gate runs all tests as an ordinary user, and these as root too. Of the last,
# only the tests with disks: the others take a minute, and no file or device is in their way.
ROOT := cmd/openstack-sim driver/host driver/host/mount driver/node internal/openstacksim/dataplane test/suite/attack/tenant test/suite/nodekills test/suite/driver
ROOT_DRIVER := TestAWholeLifeWithData|TestTheDataOfABackupInCephIsRestoredAsItWas|TestADiskThatMayNotBelongToTheVolumeIsNotUsed
test-root: ## as root: the packages of make test that have tests of real devices
	$(MAKE) test COUNT=1 PACKAGES='$(filter-out ./test/suite/driver,$(ROOT:%=./%))'
	$(MAKE) test COUNT=1 PACKAGES=./test/suite/driver RUN='^($(ROOT_DRIVER))$$$$'

# What is cheap comes first. Vet also reads every dependency. So a module below test/ that the gate does not build is vetted where its target builds
# it, or not at all where that takes minutes: those that build Kubernetes or kubectl (gofumpt reads their files). test/kit/strict is vetted by
# test/kit/kit.mk, test/suite/external/e2e by test/suite/external/build.sh. test/kit/render is not: its only code is one call of kubectl, which the
# compiler checks. No file is left out by a tag of tests, so one vet reads all; what only
# tagged tests use shows without them (U1000). GOGC=400 as for test, above.
lint: export GOGC := 400
lint: ## format, prose, shell scripts, module files, vet of every build tag, staticcheck
	@unformatted=$$($(TOOL) gofumpt -l $(GOFILES)); [ -z "$$unformatted" ] || { echo "not gofumpt's format: $$unformatted" >&2; exit 1; }
	go run ./tools/prose/cmd/prose
	shellcheck $(SHFILES) .ci/run
	go mod tidy -diff
	go mod verify
	go vet -tags '$(TAGS),$(TEST_TAGS)' ./...
	cd test/suite/sanity && go vet ./...
	cd test/suite/examples && go vet -tags '$(TAGS),crds' ./...
	$(TOOL) staticcheck -checks U1000 ./...
	$(TOOL) staticcheck -tags '$(TAGS),$(TEST_TAGS)' ./...

# TARGET=N: N inputs take about five seconds. A number, not a time, since go test -fuzz may fail with "context deadline exceeded" when its time ends.
# Input of the driver: cloud.conf, parameters, templates, annotations and tokens; on the node, data of the kernel, the metadata and the disks.
FUZZ_DRIVER := internal/cloudconf:FuzzRoundTrip=200000 internal/cloudconf:FuzzValue=160000 driver/config:FuzzParseSettings=100000 \
  driver/contract:FuzzParseStorageClass=120000 driver/contract:FuzzParseSnapshotClass=150000 driver/contract:FuzzParseAttributesClass=150000 \
  driver/contract:FuzzTemplate=250000 driver/contract:FuzzHintsOfClaim=200000 driver/contract:FuzzMountFlags=150000 driver/controller:FuzzToken=40000 \
  driver/openstack:FuzzCinderReplies=3000 driver/openstack:FuzzNovaReplies=5000 \
  driver/host/mount:FuzzParseMountInfo=90000 driver/host/disk:FuzzSysfsTree=1400 driver/host/fs:FuzzSuperblocks=70000 \
  driver/host/metadata:FuzzParseMetadata=40000 driver/host/metadata:FuzzConfigDrives=50000 driver/host/metadata:FuzzDirectories=40000

# Input of the generator: clouds.yaml and its profiles, configuration and inventory, bundles of a checkout.
# 3,000 pairs of clouds and configurations in two minutes: make fuzz TARGETS=generator/guard:FuzzPairsOfCloudsAndConfigurations=3000
FUZZ_GENERATOR := internal/cloud:FuzzCloudsYAML=3500 internal/cloud:FuzzProfiles=20000 internal/printable:FuzzEscape=200000 \
  generator/guard:FuzzPairsOfCloudsAndConfigurations=120 generator/verify:FuzzGenerate=120 generator/verify:FuzzBundle=80

# The others: some seconds each.
FUZZ_OTHERS := driver/rpc:FuzzParseEndpoint=50000 driver/contract:FuzzZoneLabel=50000 driver/contract:FuzzHints=50000 driver/contract:FuzzSanitizeZone=50000 \
  driver/host/disk:FuzzUnitSerial=50000 driver/host/limit:FuzzBridgeKind=1000 driver/host/mount:FuzzOlderThan=50000 driver/controller:FuzzSnapshotToken=20000 \
  generator/field:FuzzAFoundFieldIsFoundAgain=20000 generator/plan:FuzzDecideNeverPanicsAndIsRepeatable=500 \
  generator/plan:FuzzClassNameIsAlwaysValidAndShort=50000 generator/migrate:FuzzImport=500 generator/worktree:FuzzADiffTurnsTheOldFileIntoTheNew=5000 \
  generator/v1alpha1:FuzzWhatIsWrittenAsYAMLReadsBackTheSame=5000 generator/v1alpha1:FuzzDecodeDistribution=5000 \
  generator/v1alpha1:FuzzDecodeInventory=5000 generator/v1alpha1:FuzzDecodePlan=5000 tools/image:FuzzTarStaysBelowTheRoot=1000 \
  internal/diagnosis/support:FuzzRedactorNeverPanics=5000 internal/openstacksim:FuzzParseDict=50000 internal/openstacksim:FuzzPython=50000 \
  internal/openstacksim/cloudfile:FuzzParse=5000

TARGETS ?= $(FUZZ_DRIVER) $(FUZZ_GENERATOR) $(FUZZ_OTHERS)
fuzz: ## each fuzz target, some five seconds each (TARGETS=driver/config:FuzzParseSettings=1000, FACTOR=100)
	@set -e; for target in $(TARGETS); do \
	  name=$${target%=*}; echo "$$name"; \
	  go test "./$${name%:*}" -run '^$$' -fuzz "^$${name#*:}\$$" -fuzztime "$$(($${target#*=} * $(or $(FACTOR),1)))x" -fuzzminimizetime 10x -parallel 2; done

vulncheck: ## known vulnerabilities that the programs reach (it asks https://vuln.go.dev, or GOVULNDB)
	$(TOOL) govulncheck $${GOVULNDB:+-db $$GOVULNDB} ./cmd/...

##@ Write files that tests compare with
.PHONY: update format chart-docs sidecar-flags pictures

update: build ## update the files that tests compare with: goldens, tables and overlays/
	go test ./charts -run "^TestTheChartHasTheSettingsOfTheTable$$" -update
	go test ./charts -update
	go test ./manifests -update
	go test ./generator/verify -run "^TestTheRenderingsAreThoseThatAReviewerHasRead$$" -update
	go test ./generator/cli ./overlays ./docs -update

format: ## write every Go file in gofumpt's format
	$(TOOL) gofumpt -w $(GOFILES)

sidecar-flags: ## read the flags of the CSI sidecars from their modules, after one of their images changed
	flags=$$(go run ./generator/verify/sidecarflags) && printf '%s\n' "$$flags" >generator/verify/sidecars.yaml

chart-docs: tools ## write the chart's README from its values.yaml
	bin/tools/helm-docs --chart-search-root charts --sort-values-order file --badge-style flat

pictures: ## draw the pictures of the pages again, from manifests, measured tables and recordings
	go run ./tools/pictures/cmd/pictures

include test/bed/bed.mk
include test/kit/kit.mk
include test/suite/suite.mk
include tools/tools.mk
