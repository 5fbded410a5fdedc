# Real systems on this machine, and how they start and stop. test/bed/*/README.md say how each is made.

##@ Real systems on this machine
.PHONY: openstack-up openstack-down cloud-up cloud-down cluster-up cluster-down vm-parts guest-parts

openstack-up: ## start a real OpenStack on this machine (root, Debian 12; TLS=1 or 0: behind TLS with a private CA, or not)
	$(if $(TLS),BED_TLS=$(TLS)) test/bed/openstack/up.sh

openstack-down: ## stop that OpenStack and delete its data
	test/bed/openstack/down.sh --wipe

# One cloud of test/bed/clouds. Its directory is that of the scripts there.
CLOUD ?= zed
CLOUD_BED = $(if $(filter zed,$(CLOUD)),$(OPENSTACK_BED),$(or $(CLOUD_BEDS),$(or $(TMPDIR),/tmp)/cloud-bed)/$(CLOUD)$(if $(filter ceph,$(BACKEND)),-ceph)$(if $(filter libvirt,$(COMPUTE)),-libvirt))
cloud-up cloud-down: export CLOUD := $(CLOUD)
cloud-up cloud-down: export BACKEND := $(BACKEND)
cloud-up cloud-down: export COMPUTE := $(COMPUTE)
cloud-up: $(if $(filter libvirt,$(COMPUTE)),guest-parts)
cloud-up: ## start another release (CLOUD=victoria|zed|epoxy|sid, BACKEND=file|ceph, COMPUTE=loop|libvirt)
	test/bed/clouds/up.sh

cloud-down: ## stop it and delete its data; its root directory stays (CLOUD, BACKEND, COMPUTE)
	test/bed/clouds/down.sh --wipe

# What the servers of COMPUTE=libvirt boot.
guest-parts: TEST_TOOLS += libvirt-clients
guest-parts: vm-parts
	go run ./test/bed/vm/cmd/guest-image -dir bin/vm -programs bin -join "$(CLOUD_BED)/guest" trixie

cluster-up: tools ## start a Kubernetes of three nodes on the real OpenStack (KUBERNETES=v1.28.15, KUBELET=)
	CLUSTER_KUBERNETES='$(KUBERNETES)' CLUSTER_KUBELET='$(KUBELET)' test/bed/cluster/up.sh

cluster-down: ## stop that Kubernetes and delete its data; the built programs stay
	test/bed/cluster/down.sh

# The kernels of test/bed/vm/image that the guests boot. Most tests need that of trixie alone.
VM_KERNELS := trixie
vm-parts: build test-tools # the kernels, the root file systems and the agent of the QEMU guests, in bin/vm (VM_KERNELS="trixie sid")
	$(MAKE) $(foreach kernel,$(VM_KERNELS),bin/vm/$(kernel)/initramfs)
	go build -ldflags '-s -w' -o bin/vm/guest-agent ./test/bed/vm/cmd/guest-agent

bin/vm/%/initramfs: $(wildcard test/bed/vm/image/*) tools/image/need.go tools/image/tree.go tools/image/root.go
	go run ./test/bed/vm/cmd/guest-image -dir bin/vm $*
