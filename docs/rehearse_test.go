package docs

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// TestTheCommandsOfTheRehearsalPageRun runs every command of the page, in order, in one shell.
func TestTheCommandsOfTheRehearsalPageRun(t *testing.T) {
	page := testfile.Text(t, "how-to/rehearse-a-cloud.md")
	dir := t.TempDir()
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(built(t), filepath.Join(dir, "bin")), os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(checkout, "examples")))); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n")
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		script.WriteString(block[1])
	}
	var out []byte
	for taken := true; taken; taken = err != nil && strings.Contains(string(out), "address already in use") { // since freeAddress looked
		commands := strings.NewReplacer("/tmp/", dir+"/", "127.0.0.1:9000", freeAddress(t)).Replace(script.String())
		c := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
		c.Dir, c.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}
		out, err = c.CombinedOutput()
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"site-c", "local-a", "unavailable", "HTTP 503"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("want %q in what the commands print, got\n%s", want, out)
		}
	}
}

// freeAddress is an address of this machine at which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
