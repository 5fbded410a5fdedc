# A hypershift bundle on two real API servers, with the programs of test/cluster, on the real OpenStack.

.PHONY: test-hypershift

test-hypershift: build tools crds ## as root: a hypershift bundle on two API servers and the real cloud, with each way to reach the guest (HYPERSHIFT_CLOUD=simulated without it)
	cd test/cluster && ./build.sh "$${CLUSTER_CACHE:-$$HOME/.cache/cluster-bed}/bin"
	$(if $(filter simulated,$(HYPERSHIFT_CLOUD)),,$(MAKE) openstack-up)
	go run ./test/gate -- -count 1 -tags hypershift -timeout 30m ./test/hypershift
