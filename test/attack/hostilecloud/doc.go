// Package hostilecloud lets a hostile cloud attack the driver's controller and the generator: every RPC and every command that reads a
// cloud runs against each attack, with bounds on time, requests, memory and on what reaches logs, errors and other hosts.
//
// Most of it runs in virtual time, over memory. The peak of memory is that of a real driver process over loopback.
package hostilecloud
