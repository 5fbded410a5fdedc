# Tools that tests and people use: the programs of users from pinned modules, and what the tests of this machine need.

# Debian packages for the tests of the node role on real devices. Those tests and this installation need root.
TEST_TOOLS := e2fsprogs xfsprogs btrfs-progs util-linux fdisk strace cryptsetup-bin

TOOLS := bin/tools/helm bin/tools/helm4 bin/tools/helm-docs bin/tools/kubectl
# Like Helm's own Makefile: otherwise helm 3 believes that the cluster has Kubernetes 1.20, and refuses charts that need a later version.
KUBECTL_MINOR := $(shell awk '$$1 == "k8s.io/kubectl" {split($$2, version, "."); print version[2]}' test/kit/render/go.mod)
HELM_LDFLAGS := -s -w $(foreach package,chartutil lint/rules,\
  -X helm.sh/helm/v3/pkg/$(package).k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$(package).k8sVersionMinor=$(KUBECTL_MINOR))

##@ Tools of tests
.PHONY: tools crds test-tools test-monitoring-tools

tools: $(TOOLS) ## build helm (3 and 4), helm-docs and kubectl into bin/tools/

crds: # copy the published CustomResourceDefinitions (snapshots, Prometheus operator, OpenShift) from their Go modules into bin/crds
	go run ./test/kit/crds -dir bin/crds

# The gate installs a cloud beside its first stages. For the lock of an update that goes on, unlike for that of dpkg, apt-get does not wait.
test-tools: # as root on Debian: install the file system tools that tests run, if any is missing
	@if [ "$$(id -u)" = 0 ] && command -v dpkg-query apt-get >/dev/null && \
	  [ "$$(dpkg-query -W -f '$${db:Status-Status}\n' $(TEST_TOOLS) 2>/dev/null | grep -cx installed)" -lt $(words $(TEST_TOOLS)) ]; then \
	  { apt-get update -qq || { sleep 30; apt-get update -qq; }; } && \
	  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends $(TEST_TOOLS) >/dev/null; fi

test-monitoring-tools: # as root on Debian: install Prometheus and promtool, if they are missing
	@command -v promtool >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 install -y -qq --no-install-recommends prometheus >/dev/null; }

$(TOOLS) &: test/kit/render/go.mod test/kit/render/go.sum test/kit/render/kubectl/main.go test/kit/kit.mk
	@mkdir -p bin/tools
	cd test/kit/render && go build -ldflags '-s -w' -o ../../../bin/tools/ github.com/norwoodj/helm-docs/cmd/helm-docs ./kubectl
	cd test/kit/render && go build -ldflags '$(HELM_LDFLAGS)' -o ../../../bin/tools/helm helm.sh/helm/v3/cmd/helm
	cd test/kit/render && go build -ldflags '-s -w' -o ../../../bin/tools/helm4 helm.sh/helm/v4/cmd/helm
	@touch $(TOOLS)

bin/tools/strict: test/kit/strict/go.mod test/kit/strict/go.sum $(wildcard test/kit/strict/*.go)
	@mkdir -p bin/tools
	cd test/kit/strict && go vet . && go build -ldflags '-s -w' -o ../../../bin/tools/strict .
