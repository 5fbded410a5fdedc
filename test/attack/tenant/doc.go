// Package tenant holds the attacks of a hostile tenant on the node role: a pod that may make device nodes, a volume whose content was crafted,
// and whatever may answer in place of the metadata service. Each test runs the calls of a victim's volume beside what the attacker does,
// on the kernel's own block devices and file systems, and shows that the attack fails.
package tenant
