// Package hostilecloud lets a hostile cloud attack the driver's controller and the generator. Every RPC and every command that reads a cloud
// runs against each attack. The tests limit time, requests and memory, and check what reaches logs, errors and other hosts.
//
// Most tests run in virtual time, over memory. The test of the memory peak uses a real driver process over loopback.
package hostilecloud
