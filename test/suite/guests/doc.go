// Package guests plays the life of volumes in the guests of a real cloud (make test-cloud CASE=guests). Nova's own libvirt driver plugs images of Ceph into
// machines of QEMU. The node role of the driver runs in them, its controller role on this machine.
package guests
