// Package tenant has the attacks of a hostile tenant on the node role. The tenant has a pod that makes device nodes, a volume with crafted
// content, and a false metadata service. Each test runs the calls of a victim's volume while the attacker acts, and shows that the attack
// fails. The tests use the kernel's own block devices and file systems.
package tenant
