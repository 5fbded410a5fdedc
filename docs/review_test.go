package docs

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cinder-csi/cinder-csi/internal/openstacksim"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// shellBlock is a block of commands of a page.
var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

// TestTheCommandsOfTheReviewPageRun runs every command of the page, in order, with the built program and a simulated cloud.
func TestTheCommandsOfTheReviewPageRun(t *testing.T) {
	const path = "how-to/review-a-deployment.md"
	text := testfile.Text(t, path)
	page := text
	before, after, found := strings.Cut(page, "\n## 7. ")
	if !found {
		t.Fatal("the page has no step 7")
	}
	r := newReview(t)
	for _, block := range shellBlock.FindAllStringSubmatch(before, -1) {
		r.run(t, block[1], 0)
	}
	r.sim.AddVolumeType(openstacksim.VolumeType{ID: "5f0c0f3e-7d7c-4f5e-9a53-0d3f2f1c7a10", Name: "archive"})
	changes := r.run(t, `sh "$CINDER_CSI/examples/gitops/pipelines/drift.sh" prod`, 2)
	output := regexp.MustCompile("(?s)(<!-- changes -->\n```markdown\n).*?(```\n)")
	want := output.ReplaceAllString(page, "${1}"+strings.ReplaceAll(changes, "$", "$$")+"${2}")
	if *update {
		testfile.Write(t, path, want, 0o644)
	} else if diff := cmp.Diff(want, page); diff != "" {
		t.Errorf("%s shows another output; go test ./docs -update writes it (-want +got):\n%s", path, diff)
	}
	for _, block := range shellBlock.FindAllStringSubmatch(after, -1) {
		r.run(t, block[1], 0)
	}
	for _, file := range []string{"cloud.html", "plan.html", "inventory.yaml"} {
		if content, err := os.ReadFile(filepath.Join(r.dir, "tmp", file)); err != nil || len(content) == 0 {
			t.Errorf("want %s, got %d bytes, %v", file, len(content), err)
		}
	}
}

// review is a Git repository, a simulated cloud and the environment of a person who follows the page.
type review struct {
	sim *openstacksim.Sim
	dir string
	env []string
}

func newReview(t *testing.T) *review {
	t.Helper()
	r := &review{sim: openstacksim.New(openstacksim.Default()), dir: t.TempDir()}
	server := httptest.NewServer(r.sim.Handler())
	t.Cleanup(server.Close)
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"tmp", "work"} {
		if err := os.Mkdir(filepath.Join(r.dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	clouds := strings.ReplaceAll(string(r.sim.CloudsYAML(server.URL)), "  sim-reader:", "  mycloud:")
	testfile.Write(t, filepath.Join(r.dir, ".config/openstack/clouds.yaml"), clouds, 0o600)
	r.env = []string{
		"PATH=" + built(t) + ":" + os.Getenv("PATH"), "HOME=" + r.dir, "CINDER_CSI=" + checkout, "OS_CLIENT_CONFIG_FILE=" + filepath.Join(r.dir, ".config/openstack/clouds.yaml"), "OS_CLOUD=mycloud",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
	}
	r.run(t, "git init --quiet", 0)
	return r
}

// run runs commands at the top of the repository and gives their standard output. What the page writes to /tmp goes to a directory of the test.
func (r *review) run(t *testing.T, commands string, want int) string {
	t.Helper()
	commands = strings.ReplaceAll(commands, "/tmp/", filepath.Join(r.dir, "tmp")+"/")
	c := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
	var out, messages bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = filepath.Join(r.dir, "work"), r.env, &out, &messages
	if err := c.Run(); c.ProcessState == nil || c.ProcessState.ExitCode() != want {
		t.Fatalf("%s\nwant exit %d, got %v\n%s%s", commands, want, err, out.String(), messages.String())
	}
	return out.String()
}
