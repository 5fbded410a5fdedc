# Servers in QEMU, for the node role on disks that come and go as Nova's do. See test/vm/README.md.

.PHONY: test-vm test-vm-ci vm-parts
test-vm test-vm-ci: TEST_TOOLS += qemu-system-x86 genisoimage dosfstools mtools

VM_TEST := go test -tags vm -count 1 -v -timeout 60m ./test/vm

test-vm: vm-parts ## the node role in QEMU servers: virtio, SCSI, NVMe, udev or none, every machine type; writes test/vm/RESULTS.md
	$(VM_TEST) -results RESULTS.md

test-vm-ci: vm-parts ## the part of test-vm that CI runs: virtio disks, and names that another volume got
	$(VM_TEST) -run '^Test(AVirtioDisk|AnotherVolume)'

vm-parts: build test-tools bin/vm/initramfs
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o bin/vm/guest-agent ./test/vm/cmd/guest-agent

bin/vm/initramfs: $(wildcard test/vm/image/*) internal/ociimage/need.go internal/ociimage/tree.go internal/ociimage/root.go
	go run ./test/vm/cmd/guest-image -dir bin/vm
