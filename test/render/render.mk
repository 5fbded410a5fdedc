# The tools people build bundles with, from the pinned modules of test/render, and what they make of the bundles.

.PHONY: tools test-render

tools: bin/tools/helm bin/tools/kubectl ## build helm and kubectl into bin/tools/

bin/tools/helm bin/tools/kubectl &: test/render/go.mod test/render/go.sum test/render/kubectl/main.go
	@mkdir -p bin/tools
	cd test/render && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../bin/tools/ helm.sh/helm/v3/cmd/helm ./kubectl
	@touch bin/tools/helm bin/tools/kubectl

test-render: tools ## helm template and kubectl kustomize give what the generator verified in process
	go run ./test/gate -- -count 1 -tags render -run '^TestTools' ./generator/verify ./overlays
