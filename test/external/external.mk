# Kubernetes' own storage tests, on a bundle in the cluster of test/cluster. See test/external/README.md.

.PHONY: test-external-storage

test-external-storage: build tools image ## Kubernetes' External.Storage tests on a bundle in that cluster (FOCUS=regexp, PROCS=4, KEEP=1; the first build takes half an hour)
	test/external/build.sh
	go run ./test/gate -- -count 1 -tags cluster -timeout 4h -run '^TestExternalStorage$$' ./test/cluster \
	  -focus '$(FOCUS)' -procs $(or $(PROCS),4) $(if $(KEEP),-keep)
