# The tools people build bundles with, from the pinned modules of test/render, and what they make of the bundles.

TOOLS := bin/tools/helm bin/tools/helm4 bin/tools/helm-docs bin/tools/kubectl
# Like Helm's own Makefile: otherwise helm 3 believes that the cluster has Kubernetes 1.20, and refuses charts that need a later version.
KUBECTL_MINOR := $(shell awk '$$1 == "k8s.io/kubectl" {split($$2, version, "."); print version[2]}' test/render/go.mod)
HELM_LDFLAGS := -s -w $(foreach package,chartutil lint/rules,\
  -X helm.sh/helm/v3/pkg/$(package).k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/$(package).k8sVersionMinor=$(KUBECTL_MINOR))

.PHONY: tools test-render test-render-pairwise chart-docs

tools: $(TOOLS) ## build helm (3 and 4), helm-docs and kubectl into bin/tools/

$(TOOLS) &: test/render/go.mod test/render/go.sum test/render/kubectl/main.go test/render/render.mk
	@mkdir -p bin/tools
	cd test/render && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../bin/tools/ github.com/norwoodj/helm-docs/cmd/helm-docs ./kubectl
	cd test/render && CGO_ENABLED=0 go build -trimpath -ldflags '$(HELM_LDFLAGS)' -o ../../bin/tools/helm helm.sh/helm/v3/cmd/helm
	cd test/render && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../bin/tools/helm4 helm.sh/helm/v4/cmd/helm
	@touch $(TOOLS)

test-render: tools ## helm lint; helm 3, helm 4 and kubectl kustomize give what the generator verified in process; the chart's README is current
	go run ./test/gate -- -count 1 -tags render -run '^TestTools' ./generator/verify ./overlays ./charts

test-render-pairwise: tools ## the same for every pair of switches of a configuration, all on, all off, the oldest and the newest Kubernetes (minutes)
	go run ./test/gate -- -count 1 -tags render -run '^TestToolsGive' ./generator/verify -pairwise

chart-docs: tools ## write the chart's README from its values.yaml
	bin/tools/helm-docs --chart-search-root charts --sort-values-order file --badge-style flat
