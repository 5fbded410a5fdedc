// Package inflight tracks what is in progress in this process: which objects a call works on, and which requests outlive their callers.
//
// It promises that one request at a time changes an object, and that a call that only waits keeps no other out (Work). One rule depends on it: a
// detach says that the volume is detached only while no request for the volume is in flight. The lock of a name (Take) is held for a whole
// create, because only the same create takes it.
//
// A request to the cloud continues without its caller, and a clean exit waits for it. The package keeps all this in memory only. After a restart,
// or with a second replica, two calls may change one object. Cinder and Nova then refuse the second, and package attach remembers for as long as
// Nova may need (unconfirmed.go).
package inflight
