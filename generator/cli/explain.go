package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
)

func newExplainCommand(w *World) *cobra.Command {
	return &cobra.Command{
		Use:     "explain OBJECT FIELD [DIR]",
		Short:   "Say where one value of the bundle in DIR comes from",
		Example: "  cinder-csi-generator explain storageclass/fast volumeBindingMode ./bundle",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(_ *cobra.Command, args []string) error {
			name := "."
			if len(args) == 3 {
				name = args[2]
			}
			dir, err := openBundle(name)
			if err != nil {
				return err
			}
			d, value, err := explain(*dir.Plan, args[0], args[1])
			if err != nil {
				return err
			}
			fmt.Fprintf(w.Stdout, "value: %s\ndecision: %s (%s)\nreason: %s\n", value, d.ID, d.Source, d.Reason)
			for _, f := range d.Facts {
				fmt.Fprintf(w.Stdout, "fact: %s\n", f)
			}
			return nil
		},
	}
}

// explain finds the decision behind a field of an object, and the value it gave.
func explain(p v1alpha1.Plan, object, field string) (v1alpha1.Decision, string, error) {
	id, err := decisionID(object, field)
	if err != nil {
		return v1alpha1.Decision{}, "", err
	}
	d, found := plan.DecisionOf(p, id)
	if !found || !named(d, object) {
		return v1alpha1.Decision{}, "", usage("the bundle has no %s", object)
	}
	fields, isObject := d.Value.(map[string]any)
	if !isObject {
		return d, fmt.Sprint(d.Value), nil
	}
	v, found := valueAt(fields, field)
	if !found {
		return d, "", usage("%s: no decision was made about %s; decided were %s", object, field, strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
	}
	if s, ok := v.(string); ok {
		return d, s, nil
	}
	text, err := json.Marshal(v)
	return d, string(text), err
}

// named is whether the bundle has an object of this name, where its name does not already lead to the decision.
func named(d v1alpha1.Decision, object string) bool {
	kind, name, _ := strings.Cut(object, "/")
	fields, _ := d.Value.(map[string]any)
	switch strings.ToLower(kind) {
	case "csidriver":
		return name == d.Value
	case "deployment":
		return name == "cinder-csi-controller"
	case "daemonset":
		return name == "cinder-csi-node"
	case "networkpolicy":
		return name == "cinder-csi-controller" && fields["enabled"] == true
	case "volumesnapshotclass":
		return name == fields["name"]
	case "secret":
		return name == fields["secretName"]
	}
	return true
}

// valueAt is a decided value by its path in the object, such as parameters.type; a leading spec is the object's own.
func valueAt(fields map[string]any, field string) (any, bool) {
	field = strings.TrimPrefix(field, "spec.")
	if v, found := fields[field]; found {
		return v, true
	}
	for at, c := range field {
		if inner, ok := fields[field[:at]].(map[string]any); c == '.' && ok {
			return valueAt(inner, field[at+1:])
		}
	}
	return nil, false
}

// decisionID is the id of the decision that an object's field follows from.
func decisionID(object, field string) (string, error) {
	kind, name, _ := strings.Cut(object, "/")
	byKind := map[string]string{
		"storageclass":        plan.ClassID + name,
		"volumesnapshotclass": plan.IDSnapshotClass,
		"csidriver":           plan.IDDriverName,
		"deployment":          plan.IDController,
		"daemonset":           plan.IDNode,
		"networkpolicy":       plan.IDNetworkPolicy,
		"configmap":           plan.IDCloudConf,
		"secret":              plan.IDCredentials,
	}
	if id, ok := byKind[strings.ToLower(kind)]; ok {
		if id == plan.IDCloudConf && strings.Contains(strings.ToLower(field), "topology") {
			return plan.IDTopology, nil
		}
		return id, nil
	}
	return "", usage("%q: want KIND/NAME with a kind of %s", object, strings.Join(slices.Sorted(maps.Keys(byKind)), ", "))
}
