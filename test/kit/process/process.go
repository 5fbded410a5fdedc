// Package process ends processes of a bed.
package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Terminate sends SIGTERM to the process of a pid file, and waits until the process has ended.
func Terminate(pidFile string, within time.Duration) error {
	text, err := os.ReadFile(pidFile)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(strings.Join(strings.Fields(string(text)), " "), " ")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return fmt.Errorf("%s: %w", pidFile, err)
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return fmt.Errorf("process %d of %s: %w", pid, pidFile, err)
	}
	for deadline := time.Now().Add(within); syscall.Kill(pid, 0) == nil; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d of %s still runs %s after SIGTERM", pid, pidFile, within)
		}
	}
	return nil
}
