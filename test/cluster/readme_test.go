//go:build cluster

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bundle is a generated bundle. What is done with it is what its README says, command by command.
type bundle struct {
	*cluster
	dir    string
	readme string
}

// generate makes the bundle from the running cloud, as the user that a driver should have.
func (c *cluster) generate(t *testing.T, format string) *bundle {
	t.Helper()
	b := &bundle{cluster: c, dir: filepath.Join(c.work, "bundle-"+format)}
	c.run(t, "cinder-csi-generator", "generate", "--os-cloud", "lab-appcred", "--target", "vanilla", "--format", format, "--output-dir", b.dir)
	text, err := os.ReadFile(filepath.Join(b.dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	b.readme = string(text)
	// The README's commands name the chart and the credentials by these paths.
	for link, target := range map[string]string{"charts": filepath.Join(c.repo, "charts")} {
		if err := os.Symlink(target, filepath.Join(c.work, link)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
	}
	clouds, err := os.ReadFile(filepath.Join(c.openstack, "clouds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	credentials := strings.Replace(string(clouds), "  lab-appcred:", "  openstack:", 1)
	if err := os.WriteFile(filepath.Join(c.work, "clouds.yaml"), []byte(credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

// warned finds a warning of the API server; kubectl has its own in its log.
var warned = regexp.MustCompile(`(?m)^Warning:`)

// follow runs the commands of a section of the README, in its order. Each must succeed and warn of nothing.
func (b *bundle) follow(t *testing.T, section string) {
	t.Helper()
	commands, err := b.commands(section)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range commands {
		out, messages, err := b.try(t.Context(), "", "bash", "-o", "pipefail", "-c", command)
		// kubectl diff ends with 1 where it finds a difference, which is what a first look at a bundle does.
		if err != nil && !(strings.Contains(command, "kubectl diff") && strings.Contains(out, "+++ ")) {
			t.Fatalf("the README's section %q: %v", section, err)
		}
		if warned.MatchString(messages) {
			t.Fatalf("the README's section %q: %s\n%s", section, command, messages)
		}
	}
}

// commands are the lines of the section's shell blocks, with this bundle's directory for DIR.
func (b *bundle) commands(section string) ([]string, error) {
	_, rest, found := strings.Cut(b.readme, "\n## "+section+"\n")
	if !found {
		return nil, fmt.Errorf("the bundle's README has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var commands []string
	for i, part := range strings.Split(rest, "```") {
		if i%2 == 0 {
			continue
		}
		block, isShell := strings.CutPrefix(part, "sh\n")
		if !isShell {
			return nil, fmt.Errorf("the section %q has a block that is not sh", section)
		}
		commands = append(commands, strings.Split(strings.TrimSpace(block), "\n")...)
	}
	if len(commands) == 0 {
		return nil, fmt.Errorf("the section %q of the bundle's README has no commands", section)
	}
	for i := range commands {
		commands[i] = strings.ReplaceAll(commands[i], "DIR", b.dir)
	}
	return slices.DeleteFunc(commands, func(c string) bool { return strings.HasPrefix(c, "#") }), nil
}
