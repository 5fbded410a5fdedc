# csi-test's sanity suite against the driver's program. See test/sanity/skips.txt for the specs that do not run.

.PHONY: test-sanity

SANITY := cd test/sanity && go test -count 1 -timeout 15m

test-sanity: build ## csi-test's sanity suite on the simulated cloud: one process, then controller and node apart
	$(SANITY)
	$(SANITY) -split
