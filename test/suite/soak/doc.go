// Package soak runs the driver as a process for minutes, over sockets and in real time, on a simulated cloud that often fails. It checks
// what virtual time cannot show: that goroutines and memory do not grow, and that SIGTERM drains.
package soak
