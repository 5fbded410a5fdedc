// Package rusage ends a process that takes more memory or time than its work needs.
package rusage

import (
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// What one command may take: three times the memory and six times the processor time of a bundle for 5,000 volume types. A short document may stand for
// gigabytes, or for hours of comparisons, in more ways than a check of its text can know. Others may have written it.
const (
	mostMemory    = 2 << 30 // bytes
	mostProcessor = 5 * time.Minute
)

// littleMemory is the size in bytes up to which the heap may grow by collectAt. GOMEMLIMIT replaces it.
const littleMemory = 384 << 20

// used is what this process has taken.
type used struct {
	memory    uint64 // bytes that the runtime holds
	processor time.Duration
}

func usage() used {
	of := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(of)
	var all syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &all)
	return used{of[0].Value.Uint64() - of[1].Value.Uint64(), time.Duration(all.Utime.Nano() + all.Stime.Nano())}
}

// exceeded says in a sentence which limit was exceeded; empty: none.
func (u used) exceeded() string {
	const because = "which its work does not need. What it read may stand for much more than it shows: look at what changed"
	switch {
	case u.memory > mostMemory:
		return fmt.Sprintf("the command takes more than %d MiB of memory, %s", mostMemory>>20, because)
	case u.processor > mostProcessor:
		return fmt.Sprintf("the command takes more than %s of a processor, %s", mostProcessor, because)
	}
	return ""
}

// Limit ends the process with this exit code once it exceeds a limit. Where that is in the middle of a write, it leaves what a killed generate leaves:
// the next one continues.
func Limit(code int) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(littleMemory)
	}
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			if why := usage().exceeded(); why != "" {
				fmt.Fprintln(os.Stderr, "Error: "+why)
				os.Exit(code)
			}
		}
	}()
}
