// Package attack has attacks on the driver and the generator as tests. The attackers are a hostile tenant on a node, a hostile cloud and a
// hostile pull request. Each test runs an attack and shows that it fails.
//
// docs/explanation/security.md lists the attackers. It says what each can and cannot do, and which test shows it.
package attack
