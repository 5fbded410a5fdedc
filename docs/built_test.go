package docs

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
)

// programsDir is where build puts the programs that pages call.
var programsDir string

// build builds them once for all tests: to link takes most of the time of these tests. Without cgo and symbols, as they are shipped. With the flags
// of `make build`, which then compiles no package a second time.
var build = sync.OnceValue(func() error {
	cmd := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", programsDir, "../cmd/cinder-csi-generator", "../cmd/openstack-sim")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

func TestMain(m *testing.M) {
	os.Exit(func() int {
		var err error
		if programsDir, err = os.MkdirTemp("", "pages"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(programsDir)
		return m.Run()
	}())
}

// built returns the directory of the programs that pages call. With -short, it skips the test: the linker takes most of the time of this package.
func built(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short builds no programs; make test runs the commands of this page")
	}
	if err := build(); err != nil {
		t.Fatal(err)
	}
	return programsDir
}
