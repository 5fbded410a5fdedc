# csi-test's sanity suite against the driver's program. See test/sanity/skips.txt for the specs that do not run.

.PHONY: test-sanity

SANITY := cd test/sanity && go test -count 1 -timeout 15m

test-sanity: build test-tools ## csi-test's sanity suite on the simulated cloud: file systems and raw block, one process and two (disks need root)
	$(SANITY)
	$(SANITY) -split
	$(SANITY) -access block
	$(SANITY) -access block -split
