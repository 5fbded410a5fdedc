package nodekills

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
)

var (
	ci = flag.Bool("ci", false, "kill at the part of -full that the gate has time for")

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
	if testenv.Full() || *ci {
		printReport(os.Stdout)
	}
	os.Exit(code)
}
