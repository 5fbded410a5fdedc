//go:build cluster

package cluster

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/external"
)

var (
	focus = flag.String("focus", "", "regexp: the storage tests of TestExternalStorage that run")
	procs = flag.Int("procs", 4, "how many storage tests of TestExternalStorage run at the same time")
)

// TestExternalStorage runs Kubernetes' own storage tests on a bundle: `make test-external-storage`.
func TestExternalStorage(t *testing.T) {
	c := running(t)
	t.Cleanup(func() { c.diagnose(t) })
	skips := c.externalSkips(t)
	c.loadExternalImages(t)
	before := c.takeStock(t)
	audit := c.openAuditLog(t)
	b := c.generate(t, "kustomize", endToEnd)
	if !c.installed(t) {
		c.loadImages(t, b.objects(t, "kustomize"), map[string]bool{})
		b.follow(t, "The credentials")
		b.install(t)
	}
	began := time.Now()
	verdict := external.Judge(c.runExternal(t, skips), skips)
	fmt.Printf("measured: external storage suite: %d passed, %d failed in %.0f s\n", len(verdict.Passed), len(verdict.Failed), time.Since(began).Seconds())
	for line := range strings.Lines(verdict.String()) {
		fmt.Print("measured: ", line)
	}
	if err := verdict.Err(); err != nil {
		t.Error(err)
	}
	audit.check(t)
	if *keep {
		return
	}
	b.uninstall(t)
	before.compare(t, c.takeStock(t))
}

func (c *cluster) externalSkips(t *testing.T) []external.Skip {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.repo, "test", "external", "skips.txt"))
	if err != nil {
		t.Fatal(err)
	}
	skips, err := external.ParseSkips(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return skips
}

// loadExternalImages gives every node the images of the tests' pods: Kubernetes' agnhost with Debian's busybox for a shell, and that busybox alone.
func (c *cluster) loadExternalImages(t *testing.T) {
	t.Helper()
	bin := filepath.Join(cache(), "bin")
	names := strings.Fields(c.run(t, filepath.Join(bin, "external-storage.test"), "-images"))
	if len(names) != 2 {
		t.Fatalf("external-storage.test -images: %q, want the names of two images", names)
	}
	for i, image := range [][]string{{"-link", "/agnhost=bin/agnhost", filepath.Join(bin, "agnhost")}, {"/bin/busybox"}} {
		if c.haveImage(t, names[i]) {
			continue
		}
		archive := filepath.Join(c.work, "image.tar")
		c.run(t, filepath.Join(bin, "static-image"), append([]string{"-output", archive, "-name", names[i], "-busybox", "/bin/busybox"}, image...)...)
		for _, node := range nodes {
			c.onNode(t, node, "ctr", "--namespace=k8s.io", "images", "import", archive)
		}
	}
}

// haveImage reports whether every node has an image.
func (c *cluster) haveImage(t *testing.T, name string) bool {
	t.Helper()
	for _, node := range nodes {
		if c.onNode(t, node, "ctr", "--namespace=k8s.io", "images", "list", "--quiet", "name=="+name) == "" {
			return false
		}
	}
	return true
}

// runExternal runs the tests and gives their results. The output of the tests and their reports are in the cluster's log directory.
func (c *cluster) runExternal(t *testing.T, skips []external.Skip) []external.Test {
	t.Helper()
	logs := filepath.Join(c.dir, "log", "external-storage")
	report := filepath.Join(logs, "report.json")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(report); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	output, err := os.Create(filepath.Join(logs, "output.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	definition := filepath.Join(c.repo, "test", "external")
	bin := filepath.Join(cache(), "bin")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "ginkgo"),
		"--procs="+strconv.Itoa(*procs), "--timeout=3h", "--poll-progress-after=0", "--no-color", "--json-report=report.json", "--output-dir="+logs,
		"--focus="+external.Family+".*("+*focus+")", "--skip="+external.Flag(skips),
		filepath.Join(bin, "external-storage.test"), "--",
		"--kubeconfig="+filepath.Join(c.dir, "admin.kubeconfig"), "--storage.testdriver="+filepath.Join(definition, "driver.yaml"),
		"--repo-root="+definition, "--report-dir="+logs)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.work, c.env, output, output
	// A test that fails is in the report; only a run without a report has failed as such.
	runErr := cmd.Run()
	content, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("ginkgo: %v, and no report: %v; see %s", runErr, err, output.Name())
	}
	tests, err := external.ParseReport(content)
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
