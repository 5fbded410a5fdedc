package sanity

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Upstream's plugin knows one place for its disks and its metadata, so it gets namespaces in which they are there.
//
//go:embed upstream.sh
var upstreamScript string

// startUpstream starts upstream's plugin on a server of a real OpenStack, and returns its address.
func startUpstream(t *testing.T, dir, program string) string {
	t.Helper()
	if *bed == "" || *conf == "" {
		t.Fatal("-upstream needs -bed and -cloud-config: the plugin reads disks of a server, and the project must be its own")
	}
	address := "unix://" + filepath.Join(dir, "upstream.sock")
	log, err := os.Create(filepath.Join(dir, "upstream.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command("unshare", "--mount", "--propagation", "private", "bash", "-euc", upstreamScript, "bash",
		filepath.Join(*bed, "servers", "by-name", *server), t.TempDir(),
		program, "--endpoint="+address, "--cloud-config="+*conf, "--cluster=sanity", "--v=4")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it fails if the program has ended
		_ = cmd.Wait()                          // the plugin ends by the signal
		if text, err := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("log of upstream's plugin: %v\n%s", err, text)
		}
	})
	awaitDriver(t, address)
	return address
}

// noVerdict takes the verdict of Ginkgo, because a spec that upstream fails is a result of the run and not its failure.
type noVerdict struct{}

func (noVerdict) Fail() {}

func reportUpstream(t *testing.T, o outcome) {
	t.Helper()
	o.print()
	if o.passed == 0 {
		t.Error("upstream passed no spec, so the plugin did not run")
	}
}
