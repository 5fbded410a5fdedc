package nodekills

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var (
	full = flag.Bool("full", false, "kill at every system call of every kind of volume, and at ten moments of every tool")
	ci   = flag.Bool("ci", false, "kill at the part of them that CI has time for")

	programDir string // where the driver is built
)

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "nodekills-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programDir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	if *full || *ci {
		printReport(os.Stdout)
	}
	os.Exit(code)
}
