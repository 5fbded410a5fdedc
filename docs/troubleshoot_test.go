package docs

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/generator/doctor"
	"github.com/cinder-csi/cinder-csi/internal/diagnosis/command"
	"github.com/cinder-csi/cinder-csi/test/kit/testfile"
)

// troubleshootParts are what the command prints in the recorded scenarios, which the page shows.
func troubleshootParts(t *testing.T) map[string]string {
	t.Helper()
	page := testfile.Text(t, "how-to/troubleshoot.md")
	parts := map[string]string{}
	for _, place := range regexp.MustCompile(`<!-- (printed ([a-z-]+)) -->`).FindAllStringSubmatch(page, -1) {
		text := testfile.Read(t, filepath.Join("../internal/diagnosis/testdata", place[2]+".txt"))
		parts[place[1]] = "```text\n" + string(text) + "```\n"
	}
	return parts
}

// pluginCommands has the first paragraph of what each command says about itself: the rest is for the one who runs it.
func pluginCommands() string {
	var b strings.Builder
	for _, c := range command.Commands().Commands() {
		if c.Long != "" && c.Name() != "completion" && c.Name() != "help" {
			does, _, _ := strings.Cut(c.Long, "\n\n")
			fmt.Fprintf(&b, "### kubectl cinder %s\n\n%s\n\n", c.Name(), does)
			if c.Example != "" {
				fmt.Fprintf(&b, "```text\n%s\n```\n\n", c.Example)
			}
		}
	}
	return b.String()
}

// alike are the kinds of causes that share a row, by the end of their IDs, with what they mean together.
var alike = map[string]string{
	".waiting": "the step is in progress",
	".error":   "the step fails, and the error names no cause",
}

// causesParts are the tables of the page of causes. Causes of the plugin that are alike, and have the same remedy, share a row.
func causesParts() map[string]string {
	table := func(driver bool) string {
		var rows []cause.Cause                                             // without an ID
		ids, alone := map[cause.Cause][]string{}, map[cause.Cause]string{} // what a cause means if no other shares its row
		for _, c := range cause.All() {
			if c.Driver() != driver {
				continue
			}
			id, own := "`"+string(c.ID)+"`", c.Means
			if means := alike[path.Ext(string(c.ID))]; means != "" && !driver {
				c.Means = means
			}
			c.ID = ""
			if ids[c] == nil {
				rows, alone[c] = append(rows, c), own
			}
			ids[c] = append(ids[c], id)
		}
		var b strings.Builder
		b.WriteString("| cause | means | do | who |\n| --- | --- | --- | --- |\n")
		for _, c := range rows {
			means := c.Means
			if len(ids[c]) == 1 {
				means = alone[c]
			}
			who, _, _ := strings.Cut(strings.Replace(string(c.Who), "nobody", "", 1), " ") // the page explains the word
			if c.Passes {
				who = strings.TrimPrefix(who+", passes", ", ")
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", strings.Join(ids[c], ", "), means, c.Do, who)
		}
		return b.String()
	}
	return map[string]string{"driver-causes": table(true), "claim-causes": table(false)}
}

// Alerts and other pages link to these.
func TestTroubleshootingHasASectionForEachSymptom(t *testing.T) {
	page := testfile.Text(t, "how-to/troubleshoot.md")
	for _, symptom := range []string{
		"Claim is Pending", "Pod is stuck in ContainerCreating", "Multi-Attach error", "Attach is slow", "Volume is in an error status", "File system is read-only", "Node is lost",
		"What do you see?", "Snapshot is never ready", "A clock is wrong",
	} {
		if !strings.Contains(page, "\n## "+symptom+"\n") {
			t.Errorf("no section %q", symptom)
		}
	}
}

// A cause of another name is one that nobody ever sees.
func TestTroubleshootingNamesCausesThatThereAre(t *testing.T) {
	known, subjects := map[string]bool{}, map[string]bool{} // a subject is the word before the dot; fields and files have others
	know := func(id string) {
		subject, _, _ := strings.Cut(id, ".")
		known[id], subjects[subject] = true, true
	}
	for _, c := range cause.All() {
		know(string(c.ID))
	}
	for _, c := range doctor.Checks {
		know(string(c.ID))
	}
	named := regexp.MustCompile("`([a-z]+\\.[a-z-]+)`").FindAllStringSubmatch(testfile.Text(t, "how-to/troubleshoot.md"), -1)
	for _, found := range named {
		if subject, _, _ := strings.Cut(found[1], "."); subjects[subject] && !known[found[1]] {
			t.Errorf("how-to/troubleshoot.md names %s, which is neither a cause nor a check of doctor", found[1])
		}
	}
	if len(named) < 20 {
		t.Errorf("want the causes of the page, found %d", len(named))
	}
}
