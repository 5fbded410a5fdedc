# A real Kubernetes on this machine, its nodes being servers of the real OpenStack. See test/cluster/README.md.

.PHONY: cluster-up cluster-down test-cluster test-e2e test-e2e-upstream e2e-anatomy

cluster-up: tools ## start a Kubernetes of three nodes on the real OpenStack (root, Debian 12; the first time it builds for half an hour)
	test/cluster/up.sh

cluster-down: ## stop that Kubernetes and delete its data; the built programs stay
	test/cluster/down.sh

test-cluster: build tools image ## a bundle in that cluster, by Kustomize and by Helm: volumes live, move, grow and go, nothing is left
	go run ./test/gate -- -count 1 -tags cluster -timeout 30m -run "TestBundle|TestThePages" ./test/cluster

test-e2e: build tools image ## the promises of the README in that cluster, scenario by scenario: moves, kills, swaps; at most an hour (SCENARIO=regexp, KEEP=1, UPDATE=1)
	go run ./test/gate -- -count 1 -tags cluster -timeout 90m -run "^TestEndToEnd$$$$/$(SCENARIO)" ./test/cluster $(if $(KEEP),-keep) $(if $(UPDATE),-update)

test-e2e-upstream: build tools ## the same scenarios with upstream's plugin, for the comparison (UPSTREAM=CHECKOUT); what fails is a result
	-go run ./test/gate -- -count 1 -tags cluster -timeout 90m -run '^TestEndToEndUpstream$$' ./test/cluster

e2e-anatomy: build tools image ## where the time of four flows goes, by this driver and by upstream's plugin in turn (UPSTREAM=CHECKOUT, REPEAT=3, KEEP=1); fills in docs/explanation/e2e.md
	go run ./test/gate -- -count 1 -tags cluster -timeout 90m -run '^TestAnatomy$$' ./test/cluster -repeat $(or $(REPEAT),3) -anatomy $(CURDIR)/bin/anatomy.json $(if $(KEEP),-keep)
	go run ./test/cluster/report -anatomy bin/anatomy.json
