package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

func explainDecision(out io.Writer, p v1alpha1.Plan, id string) error {
	d, found := plan.DecisionOf(p, id)
	if !found {
		return usage("the bundle has no decision %s; %s", id, nearDecisions(p, id))
	}
	value, err := textOf(d.Value)
	if err != nil {
		return err
	}
	answer{value: value, decisions: []v1alpha1.Decision{d}}.print(out)
	if objects := governed(p)(id, ""); len(objects) > 0 {
		line(out, "objects: %s", strings.Join(objects, ", "))
	}
	return nil
}

// nearDecisions are the ids that a person may have meant: those about the same subject.
func nearDecisions(p v1alpha1.Plan, id string) string {
	subject, _, _ := strings.Cut(strings.ToLower(id), ".")
	var near []string
	for _, d := range p.Decisions {
		if strings.Contains(strings.ToLower(d.ID), subject) {
			near = append(near, d.ID)
		}
	}
	const most = 20
	switch {
	case near == nil:
		return "plan prints them all. An object is KIND/NAME, such as storageclass/fast"
	case len(near) > most:
		near = append(slices.Clone(near[:most]), "and more")
	}
	return printable.Line("there are " + strings.Join(near, ", ") + plan.DidYouMean(id, near))
}
