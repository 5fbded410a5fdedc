//go:build apiserver

package apiserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cinder-csi/cinder-csi/test/kit/readme"
	"github.com/cinder-csi/cinder-csi/test/kit/testenv"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// bundles are what is applied. The hypershift bundle has both planes on one API server; their namespaces differ.
var bundles = []struct{ target, format, config, helm string }{
	{"vanilla", "kustomize", "", ""},
	{"vanilla", "kustomize", "production", ""},
	{"vanilla", "helm", "", "helm"},
	{"vanilla", "helm", "", "helm4"},
	{"vanilla", "helm", "production", "helm4"},
	{"standalone", "kustomize", "", ""},
	{"standalone", "kustomize", "openshift", ""},
	{"standalone", "helm", "", "helm"},
	{"standalone", "helm", "", "helm4"},
	{"hypershift", "kustomize", "", ""},
	{"hypershift", "kustomize", "hypershift", ""},
	{"hypershift", "helm", "", "helm"},
	{"hypershift", "helm", "", "helm4"},
}

func TestBundlesAreAppliedAndRemovedAsTheirReadmeSays(t *testing.T) {
	s := startServer(t)
	// What HyperShift makes before anybody applies a bundle, for both examples.
	for _, name := range []string{"example", "tenant-a"} {
		s.run(t, "kubectl", "create", "namespace", "clusters-"+name)
		s.run(t, "kubectl", "create", "secret", "generic", name+"-cloud-credentials", "--namespace=clusters-"+name, "--from-file=clouds.yaml=driver-clouds.yaml")
	}
	s.run(t, "kubectl", "create", "namespace", "openshift-cloud-credential-operator") // OpenShift has it
	table := []string{fmt.Sprintf("%-44s %8s %8s %8s %8s %8s", "seconds", "objects", "apply", "again", "remove", "re-apply")}
	for n, b := range bundles {
		name := strings.Join(strings.Fields(b.target+" "+b.format+" "+b.config+" "+b.helm), " ")
		t.Run(name, func(t *testing.T) {
			i, refusal := s.generateFor(t, fmt.Sprintf("bundle-%d", n), b.target, b.format, b.config)
			if refusal != "" {
				s.keep(t, result{Bundle: name, Refused: refusal})
				return
			}
			t.Cleanup(func() { s.keep(t, result{Bundle: name, Passed: !t.Failed()}) })
			s.helm(t, b.helm)
			table = append(table, fmt.Sprintf("%-44s %s", name, i.live(t)))
		})
	}
	for _, line := range table {
		t.Log("measured: " + line)
	}
}

// installation is a generated bundle and the document with its commands.
type installation struct {
	*server
	dir, readme string
	applied     bool // kubectl diff must find nothing
}

func (s *server) generate(t *testing.T, name, target, format, config string) installation {
	t.Helper()
	if config != "" {
		config = filepath.Join(s.Repo, "examples/distribution", config+".yaml")
	}
	dir := s.Path(name)
	s.run(t, generate(dir, target, format, config)...)
	return s.installation(t, dir)
}

// generate is the command that generates a bundle; without a file it has the default configuration.
func generate(dir, target, format, file string) []string {
	args := []string{"cinder-csi-generator", "generate", "--simulated", "--target", target, "--format", format, "--output-dir", dir}
	if file != "" {
		args = append(args, "--config", file)
	}
	return args
}

// installation reads the README of a bundle.
func (s *server) installation(t *testing.T, dir string) installation {
	t.Helper()
	text := testfile.Text(t, filepath.Join(dir, "README.md"))
	return installation{server: s, dir: dir, readme: text}
}

// helm makes the command helm mean that program.
func (s *server) helm(t *testing.T, program string) {
	t.Helper()
	_ = os.Remove(s.Path("bin/helm"))
	if program == "" {
		return
	}
	testenv.Must(t, os.Symlink(filepath.Join(s.Repo, "bin/tools", program), s.Path("bin/helm")))
}

// live applies the bundle, applies it again, removes it, and does so once more. It gives the times.
func (i installation) live(t *testing.T) string {
	t.Helper()
	before := i.state(t)
	times := []float64{i.install(t)}
	applied := i.state(t)
	i.applied = true
	times = append(times, i.follow(t, "Apply, and look at what would change"))
	i.applied = false
	again := i.state(t)
	// Each helm upgrade stores a record of its own.
	for _, name := range append(changed(applied, again), only(again, applied)...) {
		if !strings.Contains(name, "/sh.helm.release.v1.") {
			t.Errorf("the second apply changed or created %s", name)
		}
	}
	times = append(times, i.remove(t, before), i.install(t))
	for _, name := range only(applied, i.state(t)) {
		t.Errorf("%s is missing after it was removed and applied again", name)
	}
	i.remove(t, before)
	text := fmt.Sprintf("%8d", len(only(applied, before)))
	for _, seconds := range times {
		text += fmt.Sprintf(" %8.1f", seconds)
	}
	return text
}

// install follows the README. Where it says so, OpenShift's Cloud Credential Operator makes the Secret, which is done here in its place.
func (i installation) install(t *testing.T) float64 {
	t.Helper()
	if !strings.Contains(i.readme, "Once the bundle is applied, this shows") {
		return i.follow(t, "The credentials") + i.follow(t, "Apply, and look at what would change")
	}
	took := i.follow(t, "Apply, and look at what would change")
	i.run(t, "kubectl", "create", "secret", "generic", "cinder-csi-credentials", "--namespace=cinder-csi", "--from-file=clouds.yaml=driver-clouds.yaml")
	return took + i.follow(t, "The credentials")
}

// remove follows the README, after which the cluster must be as it was before.
func (i installation) remove(t *testing.T, before map[string]string) float64 {
	t.Helper()
	took := i.follow(t, "Remove")
	after := i.state(t)
	for _, name := range only(after, before) {
		t.Errorf("%s is left after the removal", name)
	}
	for _, name := range only(before, after) {
		t.Errorf("%s is gone after the removal, but it was there before the bundle", name)
	}
	return took
}

// follow runs the commands of a section of the README, and gives the seconds that they take.
func (i installation) follow(t *testing.T, section string) float64 {
	t.Helper()
	commands := testenv.Value(readme.Commands(i.readme, section, map[string]string{"DIR": i.dir, "CHART": "charts/cinder-csi"}))(t)
	begin := time.Now()
	for _, command := range commands {
		if strings.Contains(command, "kubectl diff") {
			out, messages, err := i.Try("bash", "-o", "pipefail", "-c", command)
			// Before the bundle is applied, kubectl diff finds a difference and ends with 1.
			if err != nil && (i.applied || !strings.Contains(out, "+++ ")) {
				t.Errorf("%s: %v\n%s%s", command, err, out, messages)
			}
			continue
		}
		i.shell(t, command)
	}
	return time.Since(begin).Seconds()
}
