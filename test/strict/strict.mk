# The API server's own code on every object that the generator emits, without a cluster.

.PHONY: test-strict crds

crds: ## copy the published CustomResourceDefinitions (snapshots, Prometheus operator, OpenShift) from their Go modules into bin/crds
	go run ./test/crds -dir bin/crds

bin/tools/strict: test/strict/go.mod test/strict/go.sum $(wildcard test/strict/*.go)
	@mkdir -p bin/tools
	cd test/strict && go vet . && CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o ../../bin/tools/strict .

test-strict: bin/tools/strict crds ## each object of each target, format and switch by the API server's decoding, defaults and validation (the first build takes minutes)
	go vet -tags strict ./generator/verify
	go run ./test/gate -- -count 1 -tags strict -run '^TestTheAPIServer' ./generator/verify
