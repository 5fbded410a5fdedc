# A real OpenStack on this machine, for tests. See test/openstack/README.md.

.PHONY: openstack-up openstack-down bench-openstack bench-inspect test-openstack-restarts

BED_TEST := go test -count 1 -timeout 30m -v

openstack-up: ## start a real OpenStack on this machine (root, Debian 12)
	test/openstack/up.sh

openstack-down: ## stop that OpenStack and delete its data
	test/openstack/down.sh --wipe

bench-openstack: build ## fifty volumes at once on the real cloud; an idle driver. Say VOLUMES=N for another number
	$(MAKE) openstack-up
	$(BED_TEST) -tags openstack ./test/openstack -run 'TestVolumesAtOnce|TestNothingIsAskedWhileNothingHappens' -volumes $(or $(VOLUMES),50) -idle 2m

bench-inspect: build ## time and memory of inspect on the real cloud, against its slowest request alone
	$(MAKE) openstack-up
	$(BED_TEST) -tags openstack ./test/openstack -run TestInspectTakesAboutAsLongAsItsSlowestCall

test-openstack-restarts: build ## volumes' lives while the real cloud's services restart; disturbs whoever else uses it
	$(MAKE) openstack-up
	$(BED_TEST) -tags openstack,restart ./test/openstack -run TestRestartsOfServicesUnderWayLoseNothing
