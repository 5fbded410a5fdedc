# What proves a promise: a directory of test/suite each. test/README.md says what each proves, test/TARGETS.md what each needs.
# GOGC=400 where thousands of small clouds come and go: measured on random histories, it saves an eighth of the processor time.
GATE := go run ./test/kit/gate --
# Another driver to compare with is a finished program: nothing here builds one. What it has beside, such as manifests, is in the directory UPSTREAM.
ifdef PLUGIN
override export PLUGIN := $(abspath $(PLUGIN))
endif

##@ Prove it without a cloud
.PHONY: demo test-full test-full-all test-full-race test-full-race-ci test-full-errors test-full-sanity test-full-histories test-full-histories-long test-full-partial test-full-attack
.PHONY: test-full-node-kills test-full-node-kills-ci test-full-examples test-full-sizes test-mutants test-html

demo: build ## the whole product on a simulated cloud, with one volume's life (as root, with a file); VERBOSE=1 prints everything
	go run ./test/suite/demo -bin bin -dir bin/demo $(if $(VERBOSE),-verbose)

test-full: $(addprefix test-full-,$(or $(SUITE),all)) ## each suite in full, half an hour on two cores (SUITE=race, "errors sanity", list)

# A suite that fails hides no other: the rest runs, and the last lines say which failed.
ALL_SUITES := $(addprefix test-full-,race sizes errors histories partial attack disks node-kills sanity examples)
test-full-all: #: the default: each of the others but those "not by default", with a line for each at the end
	@lines= failed=; for suite in $(ALL_SUITES); do begin=$$SECONDS end=ok; \
	  $(MAKE) $$suite || end=FAILED failed=$$end; printf -v lines '%s%-22s %5d s  %s\n' "$$lines" $$suite $$((SECONDS - begin)) $$end; \
	done; printf '\n%s' "$$lines"; [ -z "$$failed" ]

# The packages that start goroutines, and the suites that tell their stories: a test wants each `go` statement of the programs there or linked into
# the tests of one. The detector takes five to fifteen times the processor time, and needs a C compiler. The slowest package is the first, so that
# the others run beside it. RACE=... runs it on every package (weekly).
RACE := test/suite/driver cmd/cinder-csi-driver cmd/openstack-sim driver/... generator/inspect internal/cloud internal/cluster internal/diagnosis internal/memnet \
  internal/openstacksim/... internal/rusage test/bed/vm/agent test/suite/conformance test/suite/histories
test-full-race: test-tools #: the packages that start goroutines, with the race detector (a C compiler; RACE=... for all packages)
	$(GATE) -race -timeout 40m $(RACE:%=./%)

# Each row of these tables is a driver of its own with one RPC, so the detector sees in one row what it sees in hundreds. They take half of the
# processor time. -short leaves out more such tables, and the real disks, which are tests of the stage root.
RACE_TABLES := TestNoTextOfOthersMakesARow|TestWhichRPCWaitsForWhich|TestTheAnswerOfAProxyEndsNoRPC|TestAProjectOf45000|TestWhoseAnObjectIsDecidesEveryRPC|TestListsLeaveOut|TestWhatCannotBeReadIsNotChanged|TestACallerReadsWhatAnRPC
test-full-race-ci: test-tools #: not by default: race without long tables, the part that the gate runs
	GOGC=400 $(GATE) -race -short -count 1 -timeout 40m -skip '$(RACE_TABLES)' $(RACE:%=./%)

# The packages whose tests have two sizes, and no suite of their own below; a test compares.
SIZES := cmd/cinder-csi-generator driver/snapshot generator/bundle generator/cli generator/migrate generator/verify
test-full-sizes: #: what make test plays in a short size
	GOGC=400 $(GATE) -count 1 -timeout 40m $(SIZES:%=./%) -full

test-full-disks: test-tools #: 200 random damages of each file system and 20 killed mkfs; never formatted, always formatted (root; SEED=0)
	GOGC=400 go test ./driver/host -count 1 -timeout 60m -v -full -hunt-seed $(or $(SEED),0) -run 'DamagedDisk|NeverMounted' | grep -v -e '^=== ' -e '^ *--- PASS'

test-full-errors: #: every fault at every request of every RPC; each reply follows the error table, and nothing is left behind
	GOGC=400 $(GATE) -count 1 -timeout 15m ./test/suite/errortable -full

# All at once: each waits for most of its time, on a simulated cloud of its own.
SANITY := sanity-mount sanity-mount-split sanity-block sanity-block-split
test-full-sanity: build test-tools #: csi-test's sanity suite on the simulated cloud: file systems and raw block, one process and two (disks need root)
	cd test/suite/sanity && go test -c -o ../../../bin/tools/sanity.test .
	$(MAKE) -j4 -O $(SANITY)

.PHONY: $(SANITY)
$(SANITY):
	cd test/suite/sanity && ../../../bin/tools/sanity.test -test.timeout 15m $(if $(findstring block,$@),-access block) $(if $(findstring split,$@),-split)

test-full-histories: #: no volume is lost: every fault at every request of every RPC, random histories of several replicas (SEEDS=150); the mutants apply
	GOGC=400 go test ./test/suite/histories -count 1 -timeout 40m -v -full -seeds $(or $(SEEDS),150) | grep -v -e '^=== ' -e '^ *--- PASS'

test-full-histories-long: #: not by default: at least a million random operations from seed 1 on (SEEDS=4200, FIRST=1); 45 minutes
	GOGC=400 go test ./test/suite/histories -count 1 -timeout 6h -v -run Random -seed $(or $(FIRST),1) -seeds $(or $(SEEDS),4200) -keep $(or $(TMPDIR),/tmp)

test-full-partial: #: every kind of request fails alone, for as long as an RPC lasts, with 1, 4 and 20 in flight, against the page
	GOGC=400 $(GATE) -count 1 -timeout 30m -run TestAFault ./test/suite/partial -full

test-full-attack: test-tools #: attacks by a hostile tenant, cloud and pull request, which must all fail; prints the peak of memory
	$(GATE) -count 1 -timeout 20m ./test/suite/attack/tenant ./test/suite/attack/hostilecloud -full
	$(GATE) -count 1 -timeout 10m ./test/suite/attack/pullrequest

# In its own directory, so that go test shows the output of the tests.
test-full-node-kills: test-tools #: as root: kill the node process at every system call and at ten writes of each mkfs, fsck and resize; prints the table
	cd test/suite/nodekills && go test -count 1 -timeout 30m -full

test-full-node-kills-ci: test-tools #: not by default: the part of node-kills that the gate runs
	cd test/suite/nodekills && go test -count 1 -timeout 10m -ci

test-full-examples: #: examples/ and own pipelines: actionlint, GitLab CI, Terraform, and the CRDs of Argo CD and Flux (60 MB of modules the first time)
	cd test/suite/examples && go test -count 1 -tags $(TAGS),crds ./...

# FULL=1 runs the tests of the changed package without -short too. SUITES are packages whose tests run after those.
# RANDOM=10 draws some by a rule: DIRS=driver/host,driver/node SEED= SUITES= FULL=. HISTORIES=1 plays those of the histories.
test-mutants: ## mutants of the product, each caught by its test (RANDOM=10 DIRS=driver/host, HISTORIES=1)
	$(if $(HISTORIES),go test ./test/suite/histories -count 1 -timeout 30m -run '^TestEveryMutant' -mutants -v,\
	  go run ./test/suite/mutants/cmd $(if $(RANDOM),-random $(RANDOM) -dirs '$(DIRS)' -seed '$(SEED)' -suites '$(SUITES)' $(if $(FULL),-full)))

# The browser is large, so this is not part of the gate.
HTML_SCREENSHOTS ?= bin/html
test-html: build ## as root on Debian: the HTML pages in Chromium; screenshots in bin/html
	@command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; }
	mkdir -p $(HTML_SCREENSHOTS)
	cd test/suite/html && go vet ./... && go test -count 1 -timeout 10m -generator "$(abspath bin/cinder-csi-generator)" -screenshots "$(abspath $(HTML_SCREENSHOTS))"

##@ Prove it with the tools of users
.PHONY: test-render test-strict test-monitoring

test-render: tools ## helm 3 and 4, kubectl kustomize and helm lint agree with the generator (PAIRWISE=1: every pair of switches)
	$(GATE) -count 1 -tags $(TAGS),render $(if $(PAIRWISE),-run '^TestToolsGive' ./generator/verify -pairwise,-run '^TestTools' ./generator/verify ./overlays ./charts)

test-strict: bin/tools/strict crds ## each object by the API server's own decoding, defaults and validation (the first build takes minutes)
	$(GATE) -count 1 -tags $(TAGS),strict -run '^TestTheAPIServer' ./generator/verify

test-monitoring: build test-tools test-monitoring-tools ## each alert fires in its scenario and only there, each panel shows data (UPDATE=1 records that data)
	go test -tags $(TAGS),monitoring ./test/suite/monitoring -count 1 -v -run 'Alert|Panel|Metric' $(if $(UPDATE),-update -timeout 30m) | grep -v -e '^=== ' -e '^ *--- PASS'

##@ Prove it in QEMU
.PHONY: test-vm test-vm-all test-vm-ci

test-vm: $(addprefix test-vm-,$(or $(CASE),all)) ## the node role in QEMU servers: every disk bus, machine type and kernel; an hour (CASE=ci: the gate's part)

# TEST_TOOLS of the guests; the parts of a guest are in test/bed/bed.mk.
test-vm-all test-vm-ci: TEST_TOOLS += qemu-system-x86 qemu-utils genisoimage dosfstools mtools xz-utils secilc
VM_TEST := go test -tags $(TAGS),vm -count 1 -v -parallel 2 -timeout 2h ./test/suite/vm
test-vm-all: VM_KERNELS := trixie bookworm bullseye sid
test-vm-all: vm-parts #: virtio, SCSI, NVMe, udev or none, every machine type, four kernels; writes test/bed/vm/RESULTS.md
	$(VM_TEST) -kernels trixie,bookworm,bullseye,sid -results ../../bed/vm/RESULTS.md

test-vm-ci: vm-parts #: the part that the gate runs: virtio and SCSI disks, and names that another volume got
	$(VM_TEST) -run '^Test(AVirtioDisk|ASCSIDisk|AnotherVolume)'

##@ Prove it on a real OpenStack (make openstack-up)
.PHONY: test-openstack test-openstack-ci test-openstack-parity test-openstack-driver test-openstack-options test-openstack-zones test-openstack-restarts
.PHONY: test-openstack-partial test-openstack-tls test-cloud test-cloud-driver test-cloud-guests

BED_TEST := go test -count 1 -timeout 30m -v

test-openstack: $(addprefix test-openstack-,$(or $(CASE),parity driver)) ## cloudparity, generator, driver and csi-sanity on the real cloud; starts it if needed (CASE=list)

test-openstack-parity: #: the cases of the simulated cloud, on the real cloud
	$(MAKE) openstack-up
	$(GATE) -count 1 -timeout 30m ./test/suite/cloudparity -bed="$(OPENSTACK_BED)"

test-openstack-driver: build tools #: generator, driver, conformance, csi-sanity on the real cloud; OPENSTACK_TESTS=REGEXP runs some
	$(MAKE) openstack-up
	$(GATE) -count 1 -tags $(TAGS),openstack -timeout 30m -run '$(OPENSTACK_TESTS)' ./test/suite/openstack ./driver/openstack

# That release answers today as it did yesterday; what changes is what the driver asks. So every sixth case of the parity, csi-sanity once, and the
# tests in which a request meets a state that the simulated cloud knows by hearsay only.
OPENSTACK_CI := TestSanityInAProjectOfItsOwn/^file_systems$$|TestABackupIsRestoredAndDeleted|TestEightVolumes|TestTwoServersShareAVolume|TestAVolumesTypeAndMetadata
OPENSTACK_CI := $(OPENSTACK_CI)|TestTheDriverStaysInTheCloud|TestLostAnswers|TestAVolumeInUseGrows|TestInspectLists|TestCheckFinds|TestOnARealCloudTheAccessRules
test-openstack-ci: build #: not by default: the part that the gate runs
	$(MAKE) openstack-up
	$(GATE) -count 1 -timeout 20m ./test/suite/cloudparity -bed="$(OPENSTACK_BED)" -every 6
	$(GATE) -count 1 -tags $(TAGS),openstack -timeout 20m -run '$(OPENSTACK_CI)' ./test/suite/openstack ./driver/openstack

test-cloud: $(addprefix test-cloud-,$(or $(CASE),driver)) ## the same on a cloud of make cloud-up; keeps the record and writes the table (CLOUD=epoxy, CASE=guests)

# A case that fails does not hide the suites after it; judge fails for both.
test-cloud-driver: build tools #: cloudparity, generator, driver, conformance, csi-sanity on a cloud of make cloud-up; keeps the record and writes the table (CLOUD=epoxy)
	$(MAKE) cloud-up
	{ go test -json -count 1 -timeout 1h ./test/suite/cloudparity -bed="$(CLOUD_BED)" || true; \
	  OPENSTACK_BED="$(CLOUD_BED)" go test -json -p 1 -count 1 -tags $(TAGS),openstack -timeout 2h -run '$(OPENSTACK_TESTS)' ./test/suite/openstack ./driver/openstack || true; } | \
	  tee "$(CLOUD_BED)/log/test-cloud.json" | go run ./test/judge clouds -bed "$(CLOUD_BED)"

test-cloud-guests: override CLOUD := epoxy
test-cloud-guests: override BACKEND := ceph
test-cloud-guests: override COMPUTE := libvirt
test-cloud-guests: build #: the life of volumes in guests that Nova's libvirt driver runs (QEMU, Ceph); keeps the record and writes the table (an hour)
	$(MAKE) cloud-up CLOUD=$(CLOUD) BACKEND=$(BACKEND) COMPUTE=$(COMPUTE)
	OPENSTACK_BED="$(CLOUD_BED)" go test -json -count 1 -tags $(TAGS),openstack -timeout 2h -run '$(OPENSTACK_TESTS)' ./test/suite/guests | \
	  tee "$(CLOUD_BED)/log/test-guests.json" | go run ./test/judge clouds -bed "$(CLOUD_BED)"

# One volume zone beside two compute zones. Cinder takes its own zone if a request names one that it does not have.
test-openstack-zones: export CINDER_AZS := nova
test-openstack-zones: export CINDER_AZ_FALLBACK := true
test-openstack-zones: build #: volumes, zone maps and decisions on a cloud whose volume zone is no compute zone; starts it, so none may be up
	$(MAKE) openstack-up
	$(GATE) -count 1 -tags $(TAGS),openstack -timeout 20m -run TestVolumeZonesThatAreNoComputeZones ./test/suite/openstack

# Settings of clouds that differ from the defaults, all in one cloud.
test-openstack-options: export BED_TLS := 1
test-openstack-options: export BED_PAGE_SIZE := 100
test-openstack-options: export BED_GATEWAY_TIMEOUT := 30s
test-openstack-options: export BED_GATEWAY_RATE := 20
test-openstack-options: export BED_FILTERS := $(CURDIR)/test/bed/openstack/few-filters.json
test-openstack-options: export NOVA_CROSS_AZ_ATTACH := false
test-openstack-options: export BED_NODES_PER_AZ := 2
test-openstack-options: build tools #: as driver, on a cloud behind haproxy with 30 s timeouts and a rate limit, with short pages and few filters, without cross_az_attach; starts it, so none may be up
	$(MAKE) openstack-up
	SSL_CERT_FILE='$(OPENSTACK_BED)/state/tls/ca.pem' \
	  $(GATE) -count 1 -tags $(TAGS),openstack -timeout 1h -run '$(OPENSTACK_TESTS)' ./test/suite/openstack ./driver/openstack

test-openstack-restarts: build #: volumes' lives while the real cloud's services restart; disturbs whoever else uses it
	$(MAKE) openstack-up
	$(BED_TEST) -tags $(TAGS),openstack,restart ./test/suite/openstack -run TestRestartsOfServicesUnderWayLoseNothing

test-openstack-partial: build #: twenty volumes at once on the real cloud while one kind of request fails; prints times beside the healthy run
	$(MAKE) openstack-up
	$(BED_TEST) -tags $(TAGS),openstack ./test/suite/openstack -run TestPartialFaultsDelayNoVolumeForLong -volumes $(or $(VOLUMES),20)

test-openstack-tls: build tools #: each way to give the CA of a cloud behind TLS, and a rotation of the CA; switches TLS on for whoever else uses that cloud
	$(MAKE) openstack-up TLS=1
	status=0; $(BED_TEST) -tags $(TAGS),openstack,tls ./test/suite/openstack -run '^TestTLS' || status=$$?; $(MAKE) openstack-up TLS=0 && exit $$status

##@ Prove it on a real API server (the programs of make cluster-up)
.PHONY: test-apiserver test-apiserver-bundles test-apiserver-admission test-apiserver-versions test-apiserver-hangs test-openshift test-gitops test-hypershift

CLUSTER_PROGRAMS = cd test/bed/cluster && ./build.sh "$${CLUSTER_CACHE:-$$HOME/.cache/cluster-bed}/bin"

test-apiserver: $(addprefix test-apiserver-,$(or $(CASE),bundles admission)) ## bundles and kubectl cinder on an API server without nodes; minutes (CASE=list, KUBE_APISERVER=PROGRAM)

test-apiserver-bundles: build tools crds #: apply, re-apply and remove each bundle as its README says, and replace upstream, on an API server without nodes (minutes)
	$(CLUSTER_PROGRAMS)
	$(GATE) -count 1 -tags $(TAGS),apiserver -timeout 60m ./test/suite/apiserver

test-apiserver-admission: tools crds #: pods of bundles, as generated and changed, under a stand-in for the admission of OpenShift (minutes)
	$(CLUSTER_PROGRAMS)
	$(GATE) -count 1 -tags $(TAGS),openshift -timeout 20m -parallel 8 ./test/suite/openshift

# The cluster of somebody: without WRITE=1 the suite only reads. The record is printed, and stays in RECORD.
test-openshift: ## those pods, as dry runs, on your OpenShift, OKD or MicroShift (KUBECONFIG=FILE, WRITE=1, EVERY=1)
	@[ -n "$(KUBECONFIG)" ] || { echo "make test-openshift needs KUBECONFIG=FILE of a cluster" >&2; exit 2; }
	@mkdir -p bin
	status=0; $(GATE) -count 1 -tags $(TAGS),openshift -timeout 30m -parallel 8 -run '^TestOpenShift' ./test/suite/openshift -kubeconfig "$(abspath $(KUBECONFIG))" \
	  -record "$(abspath $(or $(RECORD),bin/openshift.txt))" $(if $(WRITE),-write) $(if $(EVERY),-every) || status=$$?; cat "$(abspath $(or $(RECORD),bin/openshift.txt))"; exit $$status

test-gitops: build tools crds ## Argo CD's and Flux's controllers apply examples/gitops (half an hour to build the first time)
	$(CLUSTER_PROGRAMS)
	test/suite/gitops/build.sh
	$(GATE) -count 1 -tags $(TAGS),gitops -timeout 30m -parallel 1 ./test/suite/gitops

# Each version in turn, so that one API server runs at a time. VERSIONS="v1.27.16" runs some.
test-apiserver-versions: build tools crds #: the bundles on API servers of older Kubernetes versions (VERSIONS; the first time it builds each for ten minutes); writes the table of the page
	$(CLUSTER_PROGRAMS)
	bin=$${CLUSTER_CACHE:-$$HOME/.cache/cluster-bed}; \
	test/bed/cluster/build-versions.sh "$$bin/versions" $(VERSIONS); \
	for version in $(or $(VERSIONS),$$(sed 's/#.*//' test/bed/cluster/versions.txt)); do \
	  KUBE_APISERVER="$$bin/versions/$$version/kube-apiserver" $(GATE) -count 1 -tags $(TAGS),apiserver -timeout 30m \
	    -run '^TestBundlesAreAppliedAndRemovedAsTheirReadmeSays$$' ./test/suite/apiserver -matrix $(CURDIR)/test/suite/apiserver/records; done
	go run ./test/judge versions

test-apiserver-hangs: build crds #: kubectl-cinder names the cause of each way to hang, on an API server with the real driver; RECORD=1 writes the recordings
	$(CLUSTER_PROGRAMS)
	$(GATE) -count 1 -tags $(TAGS),apiserver -timeout 10m -run '^TestVolume' ./test/suite/apiserver $(if $(RECORD),-update)
	$(if $(RECORD),go test ./internal/diagnosis -update && go test ./docs -run References -update)

test-hypershift: build tools crds ## as root: a hypershift bundle on two API servers and the real cloud (HYPERSHIFT_CLOUD=simulated)
	$(CLUSTER_PROGRAMS)
	$(if $(filter simulated,$(HYPERSHIFT_CLOUD)),,$(MAKE) openstack-up)
	$(GATE) -count 1 -tags $(TAGS),hypershift -timeout 30m ./test/suite/hypershift

##@ Prove it at scale (the programs of make cluster-up)
.PHONY: test-scale

# SCALE=small: 100 volumes on 20 nodes, six minutes. medium: 1,000 on 100. full: 10,000 on 1,000, 40 minutes, with 6 GiB of memory. all: the three, one
# after the other. SCALE_ARGS are further arguments, such as -only leader,stop -keep. PLUGIN=PATH, a cinder-csi-plugin of
# upstream, plays four stories and has records of its own.
SCALE ?= small
SCALE_small := -volumes 100 -nodes 20 -rest 30s
SCALE_medium := -volumes 1000 -nodes 100 -steady 1m -burst 200 -rest 2m -moved 100 -refused 500
SCALE_full := -volumes 10000 -nodes 1000 -steady 10m -burst 1000 -rest 5m -moved 1000 -refused 500
SCALE_OF := $(if $(PLUGIN),upstream-)
test-scale: build ## as root: up to 10,000 volumes on 1,000 hollow nodes (SCALE=small|medium|full|all, PLUGIN=PATH)
	$(CLUSTER_PROGRAMS)
	status=0; for scale in $(if $(filter all,$(SCALE)),small medium full,$(SCALE)); do \
	  case $$scale in small) args="$(SCALE_small)";; medium) args="$(SCALE_medium)";; full) args="$(SCALE_full)";; esac; \
	  $(GATE) -count 1 -tags $(TAGS),scale -timeout 2h -run '^TestScale$$' ./test/suite/scale $$args $(if $(PLUGIN),-plugin "$(PLUGIN)" -only burst$(comma)rest$(comma)move$(comma)leader) $(SCALE_ARGS) -record $(CURDIR)/test/suite/scale/records/$(SCALE_OF)$$scale.json || status=$$?; \
	done; go run ./test/judge scale && exit $$status

##@ Prove it on a real cluster (make cluster-up)
.PHONY: test-cluster test-cluster-bundle test-cluster-version test-cluster-pairs test-cluster-clouds test-cluster-e2e test-cluster-upstream
.PHONY: test-cluster-external test-cluster-recovery test-cluster-alerts test-cluster-openshift

test-cluster: $(addprefix test-cluster-,$(or $(CASE),bundle)) ## a bundle in that cluster, its promises and its recovery, case by case (CASE=e2e, list)

test-cluster-bundle: build tools image-driver #: a bundle in that cluster, by Kustomize and by Helm: volumes live, move, grow and go, nothing is left
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 30m -run "TestBundle|TestThePages" ./test/suite/cluster

# What is tried on a cluster of another version: the life of a bundle, the pages, and twelve scenarios.
VERSION_SCENARIOS = a claim waits|a StatefulSet|raw block|ReadWriteOncePod|is cloned|respects|drained node start|kubelet is killed|loses its power|start-up taint
test-cluster-version: build tools image-driver #: the same and twelve scenarios of e2e, on a cluster of another version; keeps the record and writes the table
	{ go test -json -count 1 -tags $(TAGS),cluster -timeout 1h -run 'TestBundle|TestThePages' ./test/suite/cluster; \
	  go test -json -count 1 -tags $(TAGS),cluster -timeout 1h -run '^TestEndToEnd$$/($(or $(SCENARIO),$(VERSION_SCENARIOS)))' ./test/suite/cluster; } | \
	  go run ./test/judge versions -bed "$${CLUSTER_BED:-$${TMPDIR:-/tmp}/cluster-bed}"

test-cluster-pairs: build tools crds image-driver image-generator test-monitoring-tools #: a bundle for each row of a matrix of switches, every pair of them, with Prometheus and enforced NetworkPolicies in that cluster; prints the matrix (ROWS=1-4)
	test/bed/cluster/build-pairs.sh "$${CLUSTER_CACHE:-$$HOME/.cache/cluster-bed}/bin"
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 2h -run '^TestPairs$$' ./test/suite/cluster $(if $(ROWS),-rows $(ROWS))

test-cluster-openshift: build tools crds image-driver #: in that cluster under a stand-in for OpenShift's admission: bundles for OpenShift live, take over from the operator's own objects and give them back (PLUGIN=PATH is the built-in driver)
	test/bed/cluster/build-pairs.sh "$${CLUSTER_CACHE:-$$HOME/.cache/cluster-bed}/bin"
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 2h -run '^TestOpenShift$$' ./test/suite/cluster

test-cluster-clouds: build tools image-driver #: in that cluster, a bundle for the real cloud beside those of two simulated clouds with the same zone names
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 1h -run '^TestSeveralClouds$$' ./test/suite/cluster

test-cluster-e2e: build tools image-driver #: the promises of the README in that cluster, scenario by scenario: moves, kills, swaps; half an hour on two quiet cores (SCENARIO=regexp, KEEP=1, UPDATE=1)
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 3h -run "^TestEndToEnd\$$/$(if $(SCENARIO),($(SCENARIO)))" ./test/suite/cluster $(if $(KEEP),-keep) $(if $(UPDATE),-update)

test-cluster-upstream: build tools #: the same scenarios with upstream's plugin, for the comparison (PLUGIN=PATH, UPSTREAM=DIR with its manifests); what fails is a result
	-$(GATE) -count 1 -tags $(TAGS),cluster -timeout 3h -run '^TestEndToEndUpstream$$' ./test/suite/cluster

test-cluster-external: build tools image-driver #: Kubernetes' External.Storage tests on a bundle in that cluster (FOCUS=regexp, PROCS=4, KEEP=1; the first build takes half an hour)
	test/suite/external/build.sh
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 4h -run '^TestExternalStorage$$' ./test/suite/cluster \
	  -focus '$(FOCUS)' -procs $(or $(PROCS),4) $(if $(KEEP),-keep)

test-cluster-recovery: build tools image-driver #: the cluster is lost, etcd restored, a volume transferred or deleted: kubectl cinder and the pages put it right (an hour; REHEARSAL=regexp, SITUATION=regexp)
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 3h -run "^TestRecovery\$$/$(if $(REHEARSAL),($(REHEARSAL)))" ./test/suite/cluster

test-cluster-alerts: build tools image-driver crds test-monitoring-tools #: alerts fire for their real causes in that cluster, with the rules of the bundle; each wait is divided by FACTOR=30
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 1h -run '^TestAlerts$$' ./test/suite/cluster -factor $(or $(FACTOR),30)

##@ Measure
.PHONY: measure measure-waiting measure-openstack measure-inspect measure-anatomy measure-metrics measure-partial measure-soak

measure: $(addprefix measure-,$(or $(WHAT),list)) ## times, memory and calls, for the pages that show them (WHAT=waiting, list)

measure-waiting: #: the cost of waiting, hub against polling per volume, in virtual time; writes test/suite/bench/RESULTS.md (minutes)
	go test ./test/suite/bench -run Results -results RESULTS.md -timeout 30m -v

measure-openstack: build #: fifty volumes at once on the real cloud; an idle driver (VOLUMES=N; PLUGIN=PATH is measured in turn, PAIRS=3 times)
	$(MAKE) openstack-up
	$(BED_TEST) -tags $(TAGS),openstack ./test/suite/openstack -run 'TestVolumesAtOnce|TestNothingIsAskedWhileNothingHappens' -volumes $(or $(VOLUMES),50) -idle 2m $(if $(PLUGIN),-pairs $(or $(PAIRS),3))

measure-inspect: build #: time and memory of inspect on the real cloud, against its slowest request alone
	$(MAKE) openstack-up
	$(BED_TEST) -tags $(TAGS),openstack ./test/suite/openstack -run TestInspectTakesAboutAsLongAsItsSlowestCall

measure-anatomy: build tools image-driver #: where the time of four flows goes in the cluster, by this driver and by upstream's plugin in turn (PLUGIN=PATH, UPSTREAM=DIR, REPEAT=3, KEEP=1); fills in test/suite/cluster/RESULTS.md
	$(GATE) -count 1 -tags $(TAGS),cluster -timeout 90m -run '^TestAnatomy$$' ./test/suite/cluster -repeat $(or $(REPEAT),3) -anatomy $(CURDIR)/bin/anatomy.json $(if $(KEEP),-keep)
	go run ./test/judge report -anatomy bin/anatomy.json

measure-metrics: build #: what metrics cost: time of a scrape with 1,000 volumes, memory of the node role, size of the driver (COST_BEFORE=COMMIT compares)
	go test -tags $(TAGS),monitoring ./test/suite/monitoring -count 1 -v -run Cost -before '$(COST_BEFORE)' | grep -v -e '^=== ' -e '^ *--- PASS'

# PLUGIN is another driver of the same interface, such as upstream's cinder-csi-plugin.
measure-partial: build #: ten faults of partial on this driver and on PLUGIN=PATH, as processes in real time; prints both
	go test -tags $(TAGS),partial ./test/suite/partial -count 1 -timeout 60m -v -run TestTheSameFaultsOnPrograms -programs "$(CURDIR)/bin/cinder-csi-driver,$(PLUGIN)"

measure-soak: #: the driver as a process for 15 minutes on a cloud with faults: memory does not grow, SIGTERM drains (SOAK=15m)
	go test -tags $(TAGS),soak ./test/suite/soak -count 1 -v -timeout 0 -soak $(or $(SOAK),15m)
