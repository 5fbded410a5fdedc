package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

// class is what the decision of a StorageClass holds, as far as a page shows it.
type class struct {
	name              string
	Parameters        map[string]string `json:"parameters"`
	ReclaimPolicy     string            `json:"reclaimPolicy"`
	VolumeBindingMode string            `json:"volumeBindingMode"`
}

func classesOf(plan v1alpha1.Plan) []class {
	var classes []class
	for _, d := range plan.Decisions {
		name, found := strings.CutPrefix(d.ID, classID)
		if !found {
			continue
		}
		c := class{name: name}
		// A value of another form, as in the plan of another version, is a class of which the page shows the name.
		if content, err := json.Marshal(d.Value); err == nil {
			_ = json.Unmarshal(content, &c)
		}
		classes = append(classes, c)
	}
	return classes
}

// classesByType are the classes of each volume type, by the name or ID that is their parameter.
func classesByType(plan v1alpha1.Plan) map[string][]classCell {
	byDefault := ""
	for _, d := range plan.Decisions {
		if d.ID == "defaultClass" {
			byDefault = fmt.Sprint(d.Value)
		}
	}
	all := map[string][]classCell{}
	for _, c := range classesOf(plan) {
		var notes []string
		if c.ReclaimPolicy == "Retain" {
			notes = append(notes, "keeps the volume of a deleted claim")
		}
		if c.VolumeBindingMode == "Immediate" {
			notes = append(notes, "binds at once")
		}
		name := c.Parameters["type"]
		all[name] = append(all[name], classCell{Name: c.name, Note: strings.Join(notes, ", "), Default: c.name == byDefault})
	}
	return all
}
