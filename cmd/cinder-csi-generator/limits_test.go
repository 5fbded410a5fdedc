package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/generator/cli"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// An alias stands for a mebibyte in two letters.
func TestACommandThatTakesTooMuchEnds(t *testing.T) {
	testenv.NeedFull(t, "takes 2 GiB of memory")
	if os.Getenv("RUN_MAIN") != "" {
		os.Args = []string{"cinder-csi-generator", "plan", "--simulated", "--target", "vanilla", "--config", os.Getenv("RUN_MAIN")}
		main()
	}
	file := filepath.Join(t.TempDir(), "d.yaml")
	text := "apiVersion: generator.cinder-csi.io/v1alpha1\nkind: Distribution\nspec: {roles: {node: {podAnnotations: {example.com/a: &s " + strings.Repeat("a", 1<<20-1)
	for i := range 4000 {
		text += ", example.com/a" + strings.Repeat("b", i%40) + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + ": *s"
	}
	testfile.Write(t, file, text+"}}}}\n", 0o600)
	c := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$", "-full")
	c.Env = append(os.Environ(), "RUN_MAIN="+file)
	out, err := c.CombinedOutput()
	if code := c.ProcessState.ExitCode(); code != cli.Failure || !strings.Contains(string(out), "of memory, which its work does not need") {
		t.Errorf("want exit %d and a reason, got %d: %v, %.500s", cli.Failure, code, err, out)
	}
}
