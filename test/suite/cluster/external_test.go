//go:build cluster

package cluster

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/judge/external"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

var (
	focus = flag.String("focus", "", "regexp: the storage tests of TestExternalStorage that run")
	procs = flag.Int("procs", 4, "how many storage tests of TestExternalStorage run at the same time")
)

// TestExternalStorage runs Kubernetes' own storage tests on a bundle: `make test-cluster CASE=external`.
func TestExternalStorage(t *testing.T) {
	c := running(t)
	t.Cleanup(func() { c.diagnose(t) })
	skips := c.externalSkips(t)
	c.loadExternalImages(t)
	audit := c.openAuditLog(t)
	before := c.takeStock(t)
	b := c.generate(t, "kustomize", c.endToEnd(t))
	b.installOnce(t)
	c.judgeExternal(t, skips)
	audit.check(t)
	if !*keep {
		b.uninstall(t)
	}
	c.expectStock(t, before)
}

// judgeExternal runs the tests, prints what they say and fails unless every one passed that ought to.
func (c *cluster) judgeExternal(t *testing.T, skips []external.Skip) {
	t.Helper()
	began := time.Now()
	verdict := external.Judge(c.runExternal(t, skips), skips)
	fmt.Printf("measured: external storage suite: %d passed, %d failed in %.0f s\n", len(verdict.Passed), len(verdict.Failed), time.Since(began).Seconds())
	for line := range strings.Lines(verdict.String()) {
		fmt.Print("measured: ", line)
	}
	testenv.Check(t, verdict.Err())
	if *focus == "" && verdict.Unselected > 0 {
		t.Errorf("%d tests are in no pass", verdict.Unselected)
	}
}

func (c *cluster) externalSkips(t *testing.T) []external.Skip {
	t.Helper()
	text := testfile.Text(t, filepath.Join(c.repo, "test", "judge", "external", "skips.txt"))
	skips := testenv.Value(external.ParseSkips(text))(t)
	return skips
}

// loadExternalImages gives every node the images of the tests' pods. The tests use busybox and nginx for their shell. Of the image for tests of DNS
// they use GNU dd with all its flags. So its shell may not prefer the dd of busybox.
func (c *cluster) loadExternalImages(t *testing.T) {
	t.Helper()
	bin := filepath.Join(cache(), "bin")
	dd := []string{"/bin/dd", "/bin/sh"}
	for word := range strings.FieldsSeq(c.run(t, "ldd", dd[0])) {
		if strings.HasPrefix(word, "/") {
			dd = append([]string{"-file", word}, dd...)
		}
	}
	content := map[string][]string{
		"agnhost": {"-link", "/agnhost=bin/agnhost", filepath.Join(bin, "agnhost")}, "glibc-dns-testing": dd,
		"busybox": {"/bin/busybox"}, "nginx": {"/bin/busybox"},
	}
	for name := range strings.FieldsSeq(c.run(t, filepath.Join(bin, "external-storage.test"), "-images")) {
		if c.haveImage(t, name) {
			continue
		}
		repository, _, _ := strings.Cut(path.Base(name), ":")
		archive := filepath.Join(c.work, "image.tar")
		c.run(t, filepath.Join(bin, "static-image"),
			append([]string{"-output", archive, "-name", name, "-busybox", "/bin/busybox"}, content[repository]...)...)
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

// pass is one run of ginkgo, for tests that need the same.
type pass struct {
	name       string
	definition string // of the driver, in test/suite/external
	procs      int
	focus      string // regexps over the names of the tests
	skip       string
	labels     string // ginkgo's label filter
}

// immediate are the tests that want their claims bound before there is a pod. They have a definition of their own: other tests need two volumes
// of one pod in one zone.
const immediate = `volume-modify-stress .* should modify volumes|-performance should`

// runExternal runs the tests and gives their results. Those that stop kubelet run alone, after the others.
func (c *cluster) runExternal(t *testing.T, skips []external.Skip) []external.Test {
	t.Helper()
	key := c.startNodeSSH(t)
	skip := external.Flag(skips)
	passes := []pass{
		{"parallel", "driver.yaml", *procs, *focus, skip + "|" + immediate, "!Disruptive"},
		{"disruptive", "driver.yaml", 1, *focus, skip + "|" + immediate, "Disruptive"},
	}
	if *focus == "" || *focus == "immediate" {
		passes = append(passes, pass{"immediate", "immediate.yaml", *procs, immediate, skip, ""})
	}
	var tests []external.Test
	for _, p := range passes {
		tests = append(tests, c.ginkgo(t, p, key)...)
	}
	return tests
}

// ginkgo runs the tests of a pass. Their output and report are in the cluster's log directory.
func (c *cluster) ginkgo(t *testing.T, p pass, key string) []external.Test {
	t.Helper()
	logs := filepath.Join(c.dir, "log", "external-storage", p.name)
	report := filepath.Join(logs, "report.json")
	testenv.Must(t, os.MkdirAll(logs, 0o755))
	if err := os.Remove(report); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	output := testenv.Value(os.Create(filepath.Join(logs, "output.txt")))(t)
	defer output.Close()
	definition := filepath.Join(c.repo, "test", "suite", "external")
	bin := filepath.Join(cache(), "bin")
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "ginkgo"),
		"--procs="+strconv.Itoa(p.procs), "--timeout="+beforeDeadline(t), "--poll-progress-after=0", "--no-color", "--json-report=report.json", "--output-dir="+logs,
		"--focus="+external.Family+".*("+p.focus+")", "--skip="+p.skip, "--label-filter="+p.labels,
		filepath.Join(bin, "external-storage.test"), "--",
		"--kubeconfig="+filepath.Join(c.dir, "admin.kubeconfig"), "--storage.testdriver="+filepath.Join(definition, p.definition),
		"--repo-root="+definition, "--report-dir="+logs, "--provider=local")
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.work, append(c.env, "KUBE_SSH_KEY_PATH="+key, "KUBE_SSH_USER=root"), output, output
	// A test that fails is in the report; only a run without a report has failed as such.
	runErr := cmd.Run()
	content, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("ginkgo: %v, and no report: %v; see %s", runErr, err, output.Name())
	}
	tests := testenv.Value(external.ParseReport(content))(t)
	return tests
}

// beforeDeadline is how long ginkgo may run: it needs this to clean up and to report before go test ends everything.
func beforeDeadline(t *testing.T) string {
	deadline, limited := t.Deadline()
	if !limited {
		return "24h"
	}
	return max(time.Until(deadline)-2*time.Minute, time.Second).Round(time.Second).String()
}

// startNodeSSH lets the tests run commands on each node by ssh, until the test ends. It gives the file of the key.
func (c *cluster) startNodeSSH(t *testing.T) (key string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der := testenv.Value(x509.MarshalPKCS8PrivateKey(private))(t)
	key = filepath.Join(c.work, "ssh.key")
	testfile.Write(t, key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	for _, node := range nodes {
		address := c.kubectl(t, "get", "node", node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
		c.serveSSH(t, node, net.JoinHostPort(address, "22"), key)
	}
	return key
}

// serveSSH starts the server on one node. It ends when the test closes its standard input.
func (c *cluster) serveSSH(t *testing.T, node, address, key string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(c.repo, "test", "bed", "cluster", "exec-node.sh"), node, filepath.Join(cache(), "bin", "node-ssh"),
		"-listen", address, "-key", key, "-path", filepath.Join(c.repo, "test", "suite", "external", "node"))
	cmd.Env, cmd.Stderr = c.env, os.Stderr
	in := testenv.Value(cmd.StdinPipe())(t)
	out := testenv.Value(cmd.StdoutPipe())(t)
	testenv.Must(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // it ends by itself, with code 0 or not
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("node-ssh on %s says %q: %v", node, line, err)
	}
}
