// Package nodekills kills the node process at every system call that matters, and checks that kubelet's retries repair
// what the kill left behind.
//
// The driver is a process of its own with its node role only. It works on real loop devices, file systems and mounts,
// as root; the test speaks CSI to it over its socket, as kubelet does. strace delays a chosen system call at its
// beginning or at its end. Meanwhile the test kills the process and its tools, as the end of a container does.
//
// The calls are not listed by hand. A run without kills records every call that changes something. So the tests also
// kill at a call that is new in the driver, without a change here.
package nodekills
