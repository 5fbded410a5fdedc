// Package vm tests the node role of the driver in QEMU guests (make test-vm). The guests are those of test/bed/vm.
package vm
