package cli

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// TestTheCommandsOfTheHowTosRun runs each command of this program on the pages about an installation, with the simulated cloud.
func TestTheCommandsOfTheHowTosRun(t *testing.T) {
	b := newBed(t)
	b.api = http.HandlerFunc(installed)
	b.dir = t.TempDir() // a page writes clouds.yaml
	b.file(t, "cloud.conf", upstreamConf)
	b.file(t, "values.yaml", "clusterID: kubernetes\n")
	b.file(t, "distribution.yaml", ownImage)
	var pages []string
	for _, page := range []string{"check-before-you-install", "replace-upstream"} {
		text, err := os.ReadFile("../../docs/how-to/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, string(text))
	}
	t.Chdir(b.dir)
	ran := map[string]int{}
	for line := range strings.Lines(strings.Join(pages, "\n")) {
		command, found := strings.CutPrefix(strings.TrimSpace(line), "bin/cinder-csi-generator ")
		if !found {
			continue
		}
		command, _, _ = strings.Cut(command, " > ")
		args := strings.Fields(strings.ReplaceAll(command, "mycloud", "sim-demo"))
		_, stderr, code := b.run(t, args...)
		findings := args[0] == "doctor" && code == Failure && strings.Contains(stderr, "findings are errors")
		if code != OK && !findings {
			t.Errorf("%s: exit %d: %s", command, code, stderr)
		}
		ran[args[0]]++
	}
	if ran["doctor"] < 3 || ran["import"] != 2 || ran["generate"] != 1 {
		t.Errorf("want doctor, two imports and generate, got %v", ran)
	}
}
