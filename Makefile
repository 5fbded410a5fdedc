# cinder-csi: a Cinder CSI driver that configures itself from the cloud it runs on.
# `make help` lists the targets; the comment after ## is the help of a target.

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
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the four programs into bin/
	CGO_ENABLED=0 go build -trimpath -tags '$(TAGS)' -ldflags '$(LDFLAGS)' -o bin/ $(PROGRAMS:%=./cmd/%)

.PHONY: demo
demo: build ## inspect, generate and verify on a simulated cloud, and the life of one volume (as root, with a file on it)
	go run ./test/demo -bin bin -dir bin/demo

.PHONY: test
test: test-tools ## all tests without a cloud, with the race detector, and csi-sanity; tests of real devices need root
	go run ./test/gate -- -race -timeout 40m ./...
	cd test/examples && go test ./...
	$(MAKE) test-errors test-sanity

# Left out: the suites that play faults, attacks, histories and kills, the benchmark, and the check of every rendered object. -short leaves
# out what needs root: real devices, file systems and mounts.
SLOW_PACKAGES := generator/verify test/attack test/bench test/cloudparity test/errortable test/histories test/nodekills test/soak

.PHONY: test-fast
test-fast: ## the tests of most packages in under a minute: without root, race detector and the slow suites (SLOW_PACKAGES)
	go test -short $$(go list ./... $(SLOW_PACKAGES:%=| grep -v /%))

.PHONY: test-errors
test-errors: ## every fault at every request of every RPC; each reply follows the error table, and nothing is left behind
	go test ./test/errortable -count 1 -timeout 15m -full

# Debian packages for the tests of the node role on real devices. Those tests and this installation need root.
TEST_TOOLS := e2fsprogs xfsprogs btrfs-progs util-linux fdisk strace

.PHONY: test-tools
test-tools: ## as root on Debian: install the file system tools that tests run, if any is missing
	@if [ "$$(id -u)" = 0 ] && command -v dpkg-query apt-get >/dev/null && \
	  [ "$$(dpkg-query -W -f '$${db:Status-Status}\n' $(TEST_TOOLS) 2>/dev/null | grep -cx installed)" -lt $(words $(TEST_TOOLS)) ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(TEST_TOOLS) >/dev/null; fi

.PHONY: test-histories
test-histories: ## no volume is lost: every fault at every request of every RPC, random histories of several replicas; the mutants apply
	go test ./test/histories -count 1 -timeout 40m -v -full -seeds 150 | grep -v -e '^=== ' -e '^ *--- PASS'

.PHONY: test-histories-long
test-histories-long: ## at least a million random operations from seed 1 on (SEEDS=4200, FIRST=1); about 45 minutes on two cores
	GOGC=400 go test ./test/histories -count 1 -timeout 6h -v -run Random -seed $(or $(FIRST),1) -seeds $(or $(SEEDS),4200) -keep $(or $(TMPDIR),/tmp)

.PHONY: test-soak
test-soak: ## the driver as a process for 15 minutes on a cloud with faults: memory does not grow, SIGTERM drains (SOAK=15m)
	go test -tags soak ./test/soak -count 1 -v -timeout 0 -soak $(or $(SOAK),15m)

.PHONY: test-mutants
test-mutants: ## test-histories finds each mutant of the driver (test/histories/mutants) on its recorded history; minutes
	go test ./test/histories -count 1 -timeout 30m -run '^TestEveryMutant' -mutants -v

.PHONY: test-attack
test-attack: test-tools ## attacks by a hostile tenant, cloud and pull request, which must all fail; prints the peak of memory
	go run ./test/gate -- -count 1 -timeout 10m ./test/attack/...

.PHONY: test-node-kills test-node-kills-ci
# In its own directory, so that go test shows the output of the tests.
test-node-kills: test-tools ## as root: kill the node process at every system call and at ten writes of each mkfs, fsck and resize; prints the table
	cd test/nodekills && go test -count 1 -timeout 30m -full

test-node-kills-ci: test-tools ## the part of test-node-kills that CI runs
	cd test/nodekills && go test -count 1 -timeout 10m -ci

.PHONY: lint
lint: prose ## format, vet, staticcheck, texts and names, shell scripts, module files
	@unformatted=$$($(TOOL) gofumpt -l $(GOFILES)); [ -z "$$unformatted" ] || { echo "not gofumpt's format: $$unformatted" >&2; exit 1; }
	go vet ./...
	go vet -tags render,strict,openstack,restart ./test/openstack ./driver/openstack ./generator/verify ./overlays ./charts
	go vet -tags vm ./test/vm
	go vet -tags cluster ./test/cluster
	go vet -tags apiserver ./test/apiserver
	go vet -tags hypershift ./test/hypershift
	go vet -tags soak ./test/soak
	go vet -tags monitoring ./test/monitoring
	$(TOOL) staticcheck ./...
	$(TOOL) staticcheck -tags render,strict,openstack,restart ./test/openstack ./driver/openstack ./generator/verify ./overlays ./charts
	$(TOOL) staticcheck -tags vm ./test/vm
	$(TOOL) staticcheck -tags cluster ./test/cluster
	$(TOOL) staticcheck -tags apiserver ./test/apiserver
	$(TOOL) staticcheck -tags hypershift ./test/hypershift
	$(TOOL) staticcheck -tags soak ./test/soak
	$(TOOL) staticcheck -tags monitoring ./test/monitoring
	cd test/sanity && go vet ./...
	cd test/html && go vet ./...
	cd test/examples && go vet -tags crds ./...
	cd test/cluster/programs && go vet ./...
	shellcheck $(SHFILES) .ci/run
	go mod tidy -diff
	go mod verify

.PHONY: prose prose-update
prose: ## texts and names: rejected words (internal/prose/words.txt) and sentences of more than 25 words; findings may only become fewer
	go run ./internal/prose/cmd/prose

prose-update: ## write the baseline of the prose check, after texts were rewritten
	go run ./internal/prose/cmd/prose -update

.PHONY: format
format: ## write every Go file in gofumpt's format
	$(TOOL) gofumpt -w $(GOFILES)

.PHONY: update
update: build ## update the files that tests compare with: goldens and overlays/
	go test ./charts ./generator/cli ./overlays ./docs -update

.PHONY: sidecar-flags
sidecar-flags: ## read the flags of the CSI sidecars from their modules, after an image of manifests/components/images changed
	flags=$$(go run ./generator/verify/sidecarflags) && printf '%s\n' "$$flags" >generator/verify/sidecars.yaml

# Input of the driver: cloud.conf, parameters, templates, annotations and tokens; on the node, data of the kernel, the metadata and the disks.
FUZZ_DRIVER := internal/cloudconf:FuzzRoundTrip internal/cloudconf:FuzzValue driver/config:FuzzParseSettings \
  driver/contract:FuzzParseStorageClass driver/contract:FuzzParseSnapshotClass driver/contract:FuzzParseAttributesClass \
  driver/contract:FuzzTemplate driver/contract:FuzzHintsOfClaim driver/contract:FuzzMountFlags driver/controller:FuzzToken \
  driver/openstack:FuzzCinderReplies driver/openstack:FuzzNovaReplies \
  driver/host/mount:FuzzParseMountInfo driver/host/disk:FuzzSysfsTree driver/host/fs:FuzzSuperblocks \
  $(addprefix driver/host/metadata:Fuzz,ParseMetadata ConfigDrives Directories)

# Input of the generator: clouds.yaml and its profiles, configuration and inventory, bundles of a checkout.
FUZZ_GENERATOR := internal/cloud:FuzzCloudsYAML internal/cloud:FuzzProfiles generator/printable:FuzzEscape generator/verify:FuzzGenerate \
  generator/verify:FuzzBundle

.PHONY: fuzz-driver
fuzz-driver: ## each fuzz target for the input of driver and generator, for FUZZTIME (10s)
	@for target in $(FUZZ_DRIVER) $(FUZZ_GENERATOR); do \
	  echo "$$target"; go test "./$${target%:*}" -run '^$$' -fuzz "^$${target#*:}\$$" -fuzztime "$${FUZZTIME:-10s}" -fuzzminimizetime 10x -parallel 2; done

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	@go list ./... | while read -r pkg; do \
	  for f in $$(go test -list '^Fuzz' "$$pkg" | grep '^Fuzz' || true); do \
	    echo "$$pkg $$f"; go test "$$pkg" -run '^$$' -fuzz "^$$f\$$" -fuzztime "$${FUZZTIME:-10s}" -parallel 2; \
	  done; done

.PHONY: bench
bench: ## the cost of waiting, hub against polling per volume, in virtual time; writes test/bench/RESULTS.md (minutes)
	go test ./test/bench -run Results -results RESULTS.md -timeout 30m -v

.PHONY: deps
deps: ## the modules in each program
	@for p in $(PROGRAMS); do echo "$$p:"; go list -deps -f '{{with .Module}}  {{.Path}} {{.Version}}{{end}}' ./cmd/$$p | sort -u; done

.PHONY: vulncheck
vulncheck: ## known vulnerabilities that the programs reach (govulncheck; it needs the internet: https://vuln.go.dev, or GOVULNDB)
	$(TOOL) govulncheck $${GOVULNDB:+-db $$GOVULNDB} ./cmd/...

.PHONY: clean
clean: ## remove built files
	rm -rf bin dist

include test/openstack/openstack.mk
include test/render/render.mk
include test/strict/strict.mk
include test/apiserver/apiserver.mk
include test/hypershift/hypershift.mk
include test/sanity/sanity.mk
include test/vm/vm.mk
include test/cluster/cluster.mk
include test/external/external.mk
include test/examples/examples.mk
include test/html/html.mk
include test/monitoring/monitoring.mk
include internal/ociimage/image.mk
include internal/release/release.mk

.PHONY: test-openstack
test-openstack: test-parity test-openstack-driver ## cloudparity, generator, driver and csi-sanity against the real cloud; starts it if it is not up

.PHONY: test-parity
test-parity: ## the cases of the simulated cloud, on the real cloud
	$(MAKE) openstack-up
	go run ./test/gate -- -count 1 -timeout 30m ./test/cloudparity -bed="$(OPENSTACK_BED)"

.PHONY: test-openstack-driver
test-openstack-driver: build tools ## generator, driver, conformance, csi-sanity on the real cloud; OPENSTACK_TESTS=REGEXP runs some
	$(MAKE) openstack-up
	go run ./test/gate -- -count 1 -tags openstack -timeout 30m -run '$(OPENSTACK_TESTS)' ./test/openstack ./driver/openstack
