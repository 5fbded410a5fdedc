package agent

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Deaf replaces this process by a program that gets no netlink socket (seccomp(2)), so none of the kernel's events. It returns only
// when that fails.
func Deaf(args []string) error {
	const call, firstArgument, word = 0, 16, unix.BPF_LD | unix.BPF_W | unix.BPF_ABS // struct seccomp_data
	const equal, answer = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: word, K: call},
		{Code: equal, K: unix.SYS_SOCKET, Jf: 3},
		{Code: word, K: firstArgument},
		{Code: equal, K: unix.AF_NETLINK, Jf: 1},
		{Code: answer, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		{Code: answer, K: unix.SECCOMP_RET_ALLOW},
	}
	runtime.LockOSThread() // the filter is this thread's, and the program's that it becomes
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("set the filter: %w", err)
	}
	return unix.Exec(args[0], args, os.Environ())
}
