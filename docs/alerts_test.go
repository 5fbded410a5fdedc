package docs

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/cinder-csi/cinder-csi/test/kit/page"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// alertFiles are the rules of the chart, in the order of the page.
var alertFiles = []string{"controller", "node", "capacity", "drift-check"}

// usualCommand is that of most alerts; the page has it once.
const usualCommand = "kubectl cinder list --wrong --os-cloud mycloud"

// alertSections has a section for each alert, from its annotations. Its description is left out: the alert itself shows it, with names and values.
func alertSections(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, name := range alertFiles {
		text := testfile.Read(t, "../charts/cinder-csi/alerts/"+name+".yaml")
		var file struct {
			Groups []struct {
				Rules []struct {
					Alert, For          string
					Labels, Annotations map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, group := range file.Groups {
			for _, r := range group.Rules {
				after := "at once"
				if r.For != "" {
					after = "after " + r.For
				}
				command := ""
				if is := strings.Replace(r.Annotations["command"], "CLOUD", "mycloud", 1); is != usualCommand {
					command = "```sh\n" + is + "\n```\n\n"
				}
				fmt.Fprintf(&b, "\n### %s\n\n%s%s (`%s`, %s)\n\n**Do:** %s\n", r.Alert, command, r.Annotations["summary"], r.Labels["severity"], after, r.Annotations["action"])
			}
		}
	}
	return strings.TrimPrefix(b.String(), "\n")
}

func TestThePageAboutMonitoringListsTheAlerts(t *testing.T) {
	page.Hold(t, "how-to/monitor.md", map[string]string{"alerts": alertSections(t)}, *update, "go test ./docs -update")
}
