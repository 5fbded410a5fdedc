// Package attack holds attacks on the driver and the generator as tests, each named after what it exploits: a hostile tenant on a
// node, a hostile cloud, a hostile pull request. Each test runs the attack and shows that it fails.
//
// docs/explanation/security.md lists the attackers, what each can and cannot do, and the test that shows it.
package attack
