package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
)

func newExplainCommand(w *World) *cobra.Command {
	var base string
	c := &cobra.Command{
		Use:   "explain OBJECT FIELD [DIR]",
		Short: "Say where one value of the bundle in DIR comes from",
		Long: `Builds the bundle in DIR (default: the current directory) and prints one value of one object, and the decisions it follows from.
OBJECT is KIND/NAME. FIELD is a path: parameters.type, data.CLUSTER_ID, spec.template.spec.containers[driver].image; spec, data,
metadata and a pod's own spec may be left out.`,
		Example: "  cinder-csi-generator explain storageclass/fast volumeBindingMode ./bundle",
		Args:    cobra.RangeArgs(2, 3),
		RunE: func(_ *cobra.Command, args []string) error {
			name := "."
			if len(args) == 3 {
				name = args[2]
			}
			dir, tree, edited, err := readBundle(name)
			if err != nil {
				return err
			}
			for _, name := range edited {
				fmt.Fprintf(w.Stderr, "Warning: %s\n", notAsGenerated(name))
			}
			objects, _, err := verify.BundleAt(dir.Path, base, tree, dir.Plan.Target, dir.Plan.Format)
			if err != nil {
				return err
			}
			answers, err := explain(*dir.Plan, objects, args[0], args[1])
			if err != nil {
				return err
			}
			for i, a := range answers {
				if len(answers) > 1 {
					fmt.Fprintf(w.Stdout, "%sobject: %s\n", strings.Repeat("\n", min(i, 1)), a.object)
				}
				a.print(w.Stdout)
			}
			return nil
		},
	}
	baseFlag(c, &base)
	return c
}

// answer is one emitted value and what it follows from.
type answer struct {
	object    string
	value     string
	decisions []v1alpha1.Decision
	// rest says where what no decision gave comes from; empty when there is nothing of that kind.
	rest string
}

func (a answer) print(out io.Writer) {
	fmt.Fprintf(out, "value: %s\n", a.value)
	for _, d := range a.decisions {
		fmt.Fprintf(out, "decision: %s (%s)\nreason: %s\n", d.ID, d.Source, d.Reason)
		for _, f := range d.Facts {
			fmt.Fprintf(out, "fact: %s\n", f)
		}
	}
	switch {
	case a.rest == "":
	case len(a.decisions) == 0:
		fmt.Fprintf(out, "decision: none\nreason: %s\n", a.rest)
	default:
		fmt.Fprintf(out, "the rest: %s\n", a.rest)
	}
}

// explain answers for each object of the kind and name: a hosted control plane and its guest may both have one.
func explain(p v1alpha1.Plan, objects []verify.Object, object, path string) ([]answer, error) {
	kind, name, _ := strings.Cut(object, "/")
	if strings.EqualFold(kind, "secret") {
		a, err := explainSecret(p, name, path)
		return []answer{a}, err
	}
	var answers []answer
	var names []string
	var wrong error
	for _, o := range objects {
		if !strings.EqualFold(kind, o.Kind()) {
			continue
		}
		if o.Name() != name {
			names = append(names, o.Name())
			continue
		}
		value, at, found := find(o.Fields, path)
		if !found {
			wrong = usage("%s has no field %s; there are %s", o, path, fieldsNear(o.Fields, path))
			continue
		}
		a, err := answerFor(p, o, value, at)
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	switch {
	case len(answers) > 0:
		return answers, nil
	case wrong != nil:
		return nil, wrong
	case names != nil:
		slices.Sort(names)
		return nil, usage("the bundle has no %s; there are %s", object, strings.Join(slices.Compact(names), ", "))
	}
	return nil, usage("the bundle has no %s: want KIND/NAME with a kind of %s", object, strings.Join(kindsOf(objects), ", "))
}

func kindsOf(objects []verify.Object) []string {
	kinds := []string{"secret"}
	for _, o := range objects {
		kinds = append(kinds, strings.ToLower(o.Kind()))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// answerFor collects what every leaf of the value follows from.
func answerFor(p v1alpha1.Plan, o verify.Object, value any, at field) (answer, error) {
	text, err := textOf(value)
	a := answer{object: o.String(), value: text}
	all := origins(o, p)
	var given []string
	for _, leaf := range leaves(value, at) {
		var from origin
		if i := slices.IndexFunc(all, func(r origin) bool { return leaf.within(r.at) }); i >= 0 {
			from = all[i]
		}
		known := false
		for _, id := range from.ids {
			d, found := plan.DecisionOf(p, id)
			known = known || found
			if found && !slices.ContainsFunc(a.decisions, func(other v1alpha1.Decision) bool { return other.ID == id }) {
				a.decisions = append(a.decisions, d)
			}
		}
		reason := fixed(o, p)
		if from.config != "" {
			reason = from.config + " of the configuration, or its default"
		}
		if !known && !slices.Contains(given, reason) {
			given = append(given, reason)
		}
	}
	a.rest = strings.Join(given, "; ")
	return a, err
}

// fixed says where a value comes from that is no decision.
func fixed(o verify.Object, p v1alpha1.Plan) string {
	from := "it is the base's or a component's, in manifests/"
	switch {
	case p.Format == v1alpha1.Helm && o.Kind() != "Namespace":
		from = "it is the chart's"
	case slices.Contains([]string{"Namespace", "StorageClass", "VolumeSnapshotClass", "NetworkPolicy"}, o.Kind()), o.Name() == "cinder-csi-ca":
		from = "the generator always writes it so"
	}
	return "no decision was made about it: " + from
}

// explainSecret: the Secret with the credentials is a person's to create, but what it must be called and hold was decided.
func explainSecret(p v1alpha1.Plan, name, path string) (answer, error) {
	d, _ := plan.DecisionOf(p, plan.IDCredentials)
	fields, _ := d.Value.(map[string]any)
	if fields["secretName"] != name {
		return answer{}, usage("the bundle has no secret/%s; its pods need %v", name, fields["secretName"])
	}
	value, _, found := below(fields, path)
	if !found || path == "" {
		return answer{}, usage("the generator never sees a Secret; decided about this one were %s", fieldsNear(fields, ""))
	}
	text, err := textOf(value)
	return answer{value: text, decisions: []v1alpha1.Decision{d}}, err
}

// textOf is a value as people read it: text as it is, everything else as JSON.
func textOf(value any) (string, error) {
	if s, ok := value.(string); ok {
		return s, nil
	}
	text, err := json.Marshal(value)
	return string(text), err
}
