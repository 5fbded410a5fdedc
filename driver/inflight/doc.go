// Package inflight tracks what is in progress in this process: which objects a call works on, and which requests outlive their callers.
//
// It promises that one call at a time works on an object. A request to the cloud continues without its caller, and a clean
// exit waits for it. It keeps both in memory only. After a restart, or with a second replica, two calls may work on one object. No rule depends on a lock. It saves requests to the
// cloud, and covers the time before the cloud shows a request.
package inflight
