# Bundles on a real API server without nodes, with the programs of test/cluster.

.PHONY: test-apiserver test-kubectl-cinder

test-apiserver: build tools crds ## apply, re-apply and remove each bundle as its README says, and replace upstream, on an API server without nodes (minutes)
	cd test/cluster && ./build.sh "$${CLUSTER_CACHE:-$$HOME/.cache/cluster-bed}/bin"
	go run ./test/gate -- -count 1 -tags apiserver -timeout 30m ./test/apiserver

test-kubectl-cinder: build crds ## kubectl-cinder names the cause of each way to hang, on an API server with the real driver; RECORD=1 writes the recordings
	cd test/cluster && ./build.sh "$${CLUSTER_CACHE:-$$HOME/.cache/cluster-bed}/bin"
	go run ./test/gate -- -count 1 -tags apiserver -timeout 10m -run '^TestVolume' ./test/apiserver $(if $(RECORD),-update)
	$(if $(RECORD),go test ./generator/doctor/claim -update && go test ./docs -run References -update)
