# A real OpenStack on this machine, for tests. See test/openstack/README.md.

.PHONY: openstack-up openstack-down

openstack-up: ## start a real OpenStack on loopback (root, Debian 12)
	test/openstack/up.sh

openstack-down: ## stop that OpenStack and delete its data
	test/openstack/down.sh --wipe
