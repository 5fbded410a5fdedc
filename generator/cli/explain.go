package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cinder-csi/cinder-csi/driver/cause"
	"github.com/cinder-csi/cinder-csi/generator/bundle"
	"github.com/cinder-csi/cinder-csi/generator/doctor"
	"github.com/cinder-csi/cinder-csi/generator/field"
	"github.com/cinder-csi/cinder-csi/generator/plan"
	"github.com/cinder-csi/cinder-csi/generator/v1alpha1"
	"github.com/cinder-csi/cinder-csi/generator/verify"
	"github.com/cinder-csi/cinder-csi/generator/worktree"
	"github.com/cinder-csi/cinder-csi/internal/printable"
)

func newExplainCommand(w *World) *cobra.Command {
	var base string
	c := &cobra.Command{
		Use:   "explain OBJECT FIELD [DIR] | explain volumetype/NAME [DIR] | explain DECISION-ID [DIR] | explain CAUSE",
		Short: "Say where one value of the bundle in DIR comes from",
		Long: `Reads the bundle in DIR (default: the current directory) and prints one value of one object, and the decisions it comes from.
OBJECT is KIND/NAME; the short names of kubectl work. FIELD is a path: parameters.type, data.CLUSTER_ID,
spec.template.spec.containers[driver].image; spec, data, metadata and a pod's own spec may be left out.
volumetype/NAME, with the name or ID of a volume type, prints the classes of the type, or why it has none. DECISION-ID, as plan prints it,
prints one decision and the objects that it governs. CAUSE is the ID of a finding of doctor, or of a cause at the end of an
error of the driver, such as attach.reserved. It needs no bundle.`,
		Example: `  cinder-csi-generator explain storageclass/fast volumeBindingMode ./bundle
  cinder-csi-generator explain volumetype/ssd ./bundle
  cinder-csi-generator explain topology.enabled ./bundle`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			q, err := parseQuestion(args)
			if err != nil {
				return err
			}
			if q.isDecision && explainCause(w.Stdout, q.object) {
				return nil
			}
			dir, tree, edited, err := readBundle(q.dir)
			if err != nil {
				return err
			}
			errTooMany := w.warnOfEdits(dir, tree, edited)
			if q.isType {
				return explainType(w.Stdout, *dir.Plan, q.volumeType)
			}
			if q.isDecision {
				return explainDecision(w.Stdout, *dir.Plan, q.object)
			}
			if err := cmp.Or(errTooMany, checkGivenBase(dir, base)); err != nil {
				return err
			}
			outside, err := w.base(dir.Path, base, dir.Plan.Target, dir.Plan.Format)
			if err != nil {
				return err
			}
			objects, err := verify.ObjectsAt(dir.Path, outside, tree, dir.Plan.Target, dir.Plan.Format)
			if err != nil {
				return err
			}
			return explainField(w.Stdout, *dir.Plan, objects, q.object, q.field)
		},
	}
	baseFlag(c, &base)
	return c
}

// warnOfEdits says which files are not as a generator made them. A person on call needs an answer all the same. The error is that of tooMany.
func (w *World) warnOfEdits(dir *worktree.Dir, tree map[string][]byte, edited []string) error {
	made, err := w.remade(dir)
	var other []string
	var many error
	if err == nil {
		many = tooMany(tree, made)
		other, err = unlike(dir, made)
	}
	if err != nil {
		w.warn(err.Error() + ". So the answer may be what somebody wrote into the bundle")
		other = edited
	}
	for i, name := range other {
		if i == mostFindings {
			w.warn(fmt.Sprintf("and %d more files", len(other)-i))
			break
		}
		w.warn(notAsGenerated(name))
	}
	return many
}

// explainCause prints what an ID means that is no decision of a bundle: a cause of the driver, or a check of doctor. It reports whether there is one.
func explainCause(out io.Writer, id string) bool {
	row, found := cause.Find(cause.ID(id))
	if found {
		fmt.Fprint(out, row.Text())
	}
	for _, c := range doctor.Checks {
		if c.ID == id {
			fmt.Fprintf(out, "check:   %s\nmeans:   %s\nfrom:    cinder-csi-generator doctor, which says what to do about a finding\n", c.ID, c.Means)
			found = true
		}
	}
	return found
}

func explainField(out io.Writer, p v1alpha1.Plan, objects []verify.Object, object, path string) error {
	e, err := newExplainer(p, objects)
	if err != nil {
		return err
	}
	answers, err := e.explain(object, path)
	if err != nil {
		return err
	}
	for i, a := range answers {
		if len(answers) > 1 {
			fmt.Fprint(out, strings.Repeat("\n", min(i, 1)))
			line(out, "object: %s", a.object)
		}
		a.print(out)
	}
	return nil
}

// answer is one emitted value and what it follows from.
type answer struct {
	object    string
	value     string
	decisions []v1alpha1.Decision
	there     []v1alpha1.Decision // without them the value would not be there
	// rest says where what no decision gave comes from; empty when there is nothing of that kind.
	rest string
}

// line prints a line of an answer. What is in it may come from a pull request, and begins no line of its own.
func line(out io.Writer, format string, args ...any) {
	fmt.Fprintln(out, printable.Line(fmt.Sprintf(format, args...)))
}

func (a answer) print(out io.Writer) {
	fmt.Fprintf(out, "value: %s\n", strings.ReplaceAll(strings.TrimSuffix(a.value, "\n"), "\n", "\n       "))
	for _, d := range a.decisions {
		line(out, "decision: %s (%s)", d.ID, d.Source)
		line(out, "reason: %s", d.Reason)
		for _, f := range d.Facts {
			line(out, "fact: %s", f)
		}
	}
	for _, d := range a.there {
		if !slices.ContainsFunc(a.decisions, func(other v1alpha1.Decision) bool { return other.ID == d.ID }) {
			line(out, "there because of: %s (%s)", d.ID, d.Source)
			line(out, "reason: %s", d.Reason)
		}
	}
	switch {
	case a.rest == "":
	case len(a.decisions) == 0:
		line(out, "decision: none")
		line(out, "reason: %s", a.rest)
	default:
		line(out, "the rest: %s", a.rest)
	}
}

// explainer answers questions about one bundle.
type explainer struct {
	plan    v1alpha1.Plan
	objects []verify.Object
	index   *bundle.Index
}

func newExplainer(p v1alpha1.Plan, objects []verify.Object) (*explainer, error) {
	index, err := bundle.IndexOfPlan(p, verify.Chart)
	return &explainer{p, objects, index}, err
}

// shortNames are those that kubectl has for the kinds of a bundle.
var shortNames = map[string]string{
	"cm": "configmap", "deploy": "deployment", "ds": "daemonset", "netpol": "networkpolicy", "ns": "namespace", "pdb": "poddisruptionbudget",
	"sa": "serviceaccount", "sc": "storageclass", "vsc": "volumesnapshotclass", "vac": "volumeattributesclass",
}

// isKind is whether a person's word is a kind's name: in any case, in the plural too, or kubectl's short name.
func isKind(word, kind string) bool {
	word, kind = strings.ToLower(word), strings.ToLower(kind)
	return word == kind || shortNames[word] == kind || word == kind+"s" || word == kind+"es" || word == strings.TrimSuffix(kind, "y")+"ies"
}

// explain answers for each object of the kind and name: a hosted control plane and its guest may both have one.
func (e *explainer) explain(object, path string) ([]answer, error) {
	kind, name, _ := strings.Cut(object, "/")
	if isKind(kind, "secret") {
		a, err := e.secret(name, path)
		return []answer{a}, err
	}
	var answers []answer
	var names []string
	var wrong error
	for _, o := range e.objects {
		if !isKind(kind, o.Kind()) {
			continue
		}
		if o.Name() != name {
			names = append(names, o.Name())
			continue
		}
		value, at, found := field.Find(o.Fields, path)
		if !found {
			keys, where, word := field.Near(o.Fields, path)
			there := strings.Join(keys, ", ")
			if len(where) > 0 {
				there += " in " + where.String()
			}
			wrong = usage("%s", printable.Line(fmt.Sprintf("%s has no field %s; there are %s%s", o, path, there, plan.DidYouMean(word, keys))))
			continue
		}
		a, err := e.answer(o, value, at)
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
		names = slices.Compact(names)
		return nil, usage("the bundle has no %s; there are %s%s", object, printable.Line(strings.Join(names, ", ")), plan.DidYouMean(name, names))
	}
	kinds := kindsOf(e.objects)
	return nil, usage("the bundle has no %s: want KIND/NAME with a kind of %s%s", object, printable.Line(strings.Join(kinds, ", ")), plan.DidYouMean(kind, kinds))
}

func kindsOf(objects []verify.Object) []string {
	kinds := []string{"secret"}
	for _, o := range objects {
		kinds = append(kinds, strings.ToLower(o.Kind()))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// answer collects what every leaf of the value comes from.
func (e *explainer) answer(o verify.Object, value any, at field.Path) (answer, error) {
	text, err := textOf(value)
	a := answer{object: o.String(), value: text}
	var rest []string
	for _, leaf := range field.Leaves(value, at) {
		origin, known := e.index.Origin(o.Plane, o.Kind(), o.Name(), leaf)
		from, there := origin.Refs, origin.Gone
		if len(from) == 0 { // a value that is always the same where it is there
			from, there = there, nil
		}
		for _, ref := range from {
			a.decisions = with(a.decisions, e.plan, ref.Decision)
		}
		for _, ref := range slices.Concat(there, origin.There) {
			a.there = with(a.there, e.plan, ref.Decision)
		}
		if len(from) == 0 {
			rest = append(rest, e.undecided(leaf, origin, known))
		}
	}
	slices.Sort(rest)
	a.rest = strings.Join(slices.Compact(rest), "; ")
	return a, err
}

// with are decisions and another one, each once.
func with(decisions []v1alpha1.Decision, p v1alpha1.Plan, id string) []v1alpha1.Decision {
	if slices.ContainsFunc(decisions, func(d v1alpha1.Decision) bool { return d.ID == id }) {
		return decisions
	}
	if d, found := plan.DecisionOf(p, id); found {
		decisions = append(decisions, d)
	}
	return decisions
}

// undecided says where a value comes from that is no decision.
func (e *explainer) undecided(at field.Path, origin bundle.Origin, known bool) string {
	const none = "no decision was made about it: "
	switch {
	case !known && e.plan.Format == v1alpha1.Helm && slices.Contains(verify.ChartLabels, at[len(at)-1]):
		return none + "it is a label of the chart"
	case !known:
		return "it is in none of the files of generator " + e.plan.Generator + ": another version made the bundle, or somebody edited it"
	case origin.File != "":
		return none + "it is the chart's, charts/cinder-csi/templates/" + origin.File
	}
	return none + "the generator always writes it so"
}

// secret: the Secret with the credentials is a person's to create, but what it must be called and hold was decided.
func (e *explainer) secret(name, path string) (answer, error) {
	d, _ := plan.DecisionOf(e.plan, plan.IDs.Credentials.ID)
	fields, _ := d.Value.(map[string]any)
	if fields["secretName"] != name {
		return answer{}, usage("the bundle has no secret/%s; its pods need %v", name, fields["secretName"])
	}
	value, _, found := field.Below(fields, path)
	if !found || path == "" {
		return answer{}, usage("the generator never sees a Secret; decided about this one were %s", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
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
