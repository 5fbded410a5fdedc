package pictures

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"sigs.k8s.io/yaml"
)

// planFile is what `plan` prints for the simulated cloud. A test of generator/cli compares it with the program.
const planFile = "generator/cli/testdata/plan-vanilla.yaml"

// plan shows what a person reviews: the warnings, and each decision of the cloud with its reason and facts.
func plan(repository fs.FS) (string, error) {
	text, err := fs.ReadFile(repository, planFile)
	if err != nil {
		return "", err
	}
	var p struct {
		Target    string
		Decisions []struct {
			ID, Reason, Source string
			Facts              []struct{ Name, Value string }
		}
		Warnings []string
	}
	if err := yaml.Unmarshal(text, &p); err != nil {
		return "", fmt.Errorf("%s: %w", planFile, err)
	}
	c := &canvas{width: 460}
	y := 10.0
	card := func(title, class string, lines ...string) {
		var wrapped []string
		for _, line := range lines {
			wrapped = append(wrapped, wrap(line, 58)...)
		}
		h := 28 + 16*float64(len(wrapped))
		c.rect(10, y, 440, h, "box")
		c.text(20, y+19, class, title)
		for i, line := range wrapped {
			c.text(20, y+36+16*float64(i), "dim", line)
		}
		y += h + 6
	}
	cloud := 0
	for _, d := range p.Decisions {
		if d.Source == "inferred" {
			cloud++
		}
	}
	if cloud == 0 {
		return "", errors.New(planFile + " has no decision of the cloud")
	}
	c.text(10, y+14, "title", fmt.Sprintf("Plan for %s: %d decisions, %d by the cloud", p.Target, len(p.Decisions), cloud))
	y += 28
	for _, w := range p.Warnings {
		card("warning", "warn", w)
	}
	for _, d := range p.Decisions {
		if d.Source != "inferred" {
			continue
		}
		lines := []string{d.Reason}
		for _, f := range d.Facts {
			lines = append(lines, "fact: "+strings.TrimSuffix(f.Name+" = "+f.Value, " = "))
		}
		card(d.ID, "bold", lines...)
	}
	return c.svg("A plan: its warnings, and each decision that the cloud made, with its reason and the facts behind it"), nil
}
